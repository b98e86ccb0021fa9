//! The messages of the jobs API, as JSON and as protobuf. `docs/reference/coworker.proto` says the same for other languages;
//! a test keeps both equal.

use std::collections::BTreeMap;

use prost::{Enumeration, Message};
use serde::{Deserialize, Serialize};

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum JobType {
    Unspecified = 0,
    ScanIndex = 1,
    ListFiles = 2,
    ReadFile = 3,
    OrganizePlan = 4,
    ExecutePlan = 5,
    SoftDelete = 6,
    Restore = 7,
    BrowseWeb = 8,
    CreateExcel = 9,
    CreateWord = 10,
    CreatePdf = 11,
    ExecutePython = 12,
    SearchPastActions = 13,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum JobStatus {
    Unspecified = 0,
    Queued = 1,
    Running = 2,
    Succeeded = 3,
    Failed = 4,
    Canceled = 5,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandshakeRequest {
    #[serde(default)]
    #[prost(string, tag = "1")]
    pub(super) code: String,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandshakeResponse {
    #[prost(string, tag = "1")]
    pub(super) session_id: String,
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(enumeration = "JobType", tag = "2")]
    pub(super) r#type: i32,
    #[prost(string, repeated, tag = "3")]
    pub(super) params: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(bool, optional, tag = "4")]
    pub(super) requires_approval: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListToolsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) tools: Vec<Tool>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveRequest {
    #[prost(string, tag = "1")]
    pub(super) plan_job_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(int64, optional, tag = "2")]
    pub(super) ttl_seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveResponse {
    #[prost(string, tag = "1")]
    pub(super) approval_token: String,
    #[prost(string, tag = "2")]
    pub(super) plan_job_id: String,
    #[prost(string, tag = "3")]
    pub(super) plan_hash: String,
    #[prost(int64, tag = "4")]
    pub(super) ttl_seconds: i64,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitJobRequest {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[prost(string, tag = "1")]
    pub(super) job_id: String,
    #[prost(string, tag = "2")]
    pub(super) dedupe_key: String,
    #[prost(enumeration = "JobType", tag = "3")]
    pub(super) r#type: i32,
    #[serde(default)]
    #[prost(string, repeated, tag = "4")]
    pub(super) allowed_roots: Vec<String>,
    #[serde(default)]
    #[prost(btree_map = "string, string", tag = "5")]
    pub(super) params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "6")]
    pub(super) approval_token: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmitJobResponse {
    #[prost(string, tag = "1")]
    pub(super) job_id: String,
    #[prost(enumeration = "JobStatus", tag = "2")]
    pub(super) status: i32,
    #[serde(rename = "accepted_at_ms")]
    #[prost(int64, tag = "3")]
    pub(super) accepted_at_unix_ms: i64,
    #[prost(bool, tag = "4")]
    pub(super) created_new: bool,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    #[prost(string, tag = "1")]
    pub(super) job_id: String,
    #[prost(string, tag = "2")]
    pub(super) dedupe_key: String,
    #[prost(enumeration = "JobType", tag = "3")]
    pub(super) r#type: i32,
    #[prost(enumeration = "JobStatus", tag = "4")]
    pub(super) status: i32,
    #[serde(rename = "created_at_ms")]
    #[prost(int64, tag = "5")]
    pub(super) created_at_unix_ms: i64,
    #[serde(rename = "started_at_ms", default, skip_serializing_if = "Option::is_none")]
    #[prost(int64, optional, tag = "6")]
    pub(super) started_at_unix_ms: Option<i64>,
    #[serde(rename = "finished_at_ms", default, skip_serializing_if = "Option::is_none")]
    #[prost(int64, optional, tag = "7")]
    pub(super) finished_at_unix_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "8")]
    pub(super) error_message: Option<String>,
    #[serde(default)]
    #[prost(int64, tag = "9")]
    pub(super) staleness_ms: i64,
    #[serde(default)]
    #[prost(string, repeated, tag = "10")]
    pub(super) allowed_roots: Vec<String>,
    #[serde(default)]
    #[prost(btree_map = "string, string", tag = "11")]
    pub(super) params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(uint32, optional, tag = "12")]
    pub(super) progress_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "13")]
    pub(super) progress_text: Option<String>,
    #[prost(bool, tag = "14")]
    pub(super) cancel_requested: bool,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
pub(super) struct GetJobResponse {
    #[serde(flatten)]
    #[prost(message, optional, tag = "1")]
    pub(super) job: Option<Job>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListJobsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) jobs: Vec<Job>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "2")]
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelJobResponse {
    #[prost(string, tag = "1")]
    pub(super) job_id: String,
    #[prost(enumeration = "JobStatus", tag = "2")]
    pub(super) status: i32,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetResultResponse {
    #[prost(string, tag = "1")]
    pub(super) content_type: String,
    #[serde(rename = "bytes_base64", with = "base64")]
    #[prost(bytes = "vec", tag = "2")]
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) error: Option<ErrorDetail>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorDetail {
    #[prost(string, tag = "1")]
    pub(super) code: String,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "3")]
    pub(super) hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "4")]
    pub(super) field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(uint64, optional, tag = "5")]
    pub(super) retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[prost(bool, tag = "6")]
    pub(super) needs_presence: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "7")]
    pub(super) incident: Option<String>,
}

/// Bytes in JSON.
mod base64 {
    use data_encoding::BASE64;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        BASE64.decode(String::deserialize(deserializer)?.as_bytes()).map_err(D::Error::custom)
    }
}
