//! Spans as OTLP's JSON. What leaves the desk is listed here and nowhere else.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::Span;

/// What the body is.
pub(crate) const CONTENT_TYPE: &str = "application/json";

/// From the protocol: a span that serves a request; a span that failed; a trace that is kept; a parent that is known to be
/// in another process.
const KIND_SERVER: u32 = 2;
const STATUS_ERROR: u32 = 2;
const SAMPLED: u32 = 0x01;
const PARENT_IS_REMOTE: u32 = 0x300;

/// The body of one request. `instance` tells this process from others of the same desk.
pub(crate) fn encode(instance: &str, spans: &[Span]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [text("service.name", "deskmate"), text("service.version", version), text("service.instance.id", instance)];
    let spans: Vec<Value> = spans.iter().map(one).collect();
    let scoped = json!({ "scope": { "name": "deskmate", "version": version }, "spans": spans });
    json!({ "resourceSpans": [{ "resource": { "attributes": resource }, "scopeSpans": [scoped] }] }).to_string()
}

fn one(span: &Span) -> Value {
    let ended = u128::from(span.ended.unsigned_abs()) * 1_000;
    let mut attributes = vec![
        text("deskmate.operation", &span.operation),
        text("deskmate.surface", span.surface),
        text("deskmate.actor.kind", span.fate.actor),
        text("deskmate.outcome", span.fate.outcome),
    ];
    attributes.extend(span.fate.decision.map(|mode| text("deskmate.decision", mode)));
    // What the caller did wrong is no failure of this span: only what the desk did.
    let status = if span.fate.fault { json!({ "code": STATUS_ERROR }) } else { json!({}) };
    let mut value = json!({
        "traceId": HEXLOWER.encode(&span.trace),
        "spanId": HEXLOWER.encode(&span.id),
        "flags": SAMPLED | if span.parent.is_some() { PARENT_IS_REMOTE } else { 0 },
        "name": span.operation,
        "kind": KIND_SERVER,
        "startTimeUnixNano": ended.saturating_sub(span.took.as_nanos()).to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes,
        "status": status,
    });
    if let (Some(fields), Some(parent)) = (value.as_object_mut(), &span.parent) {
        fields.insert("parentSpanId".to_owned(), HEXLOWER.encode(parent).into());
    }
    value
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

    use super::*;
    use crate::telemetry::Fate;

    /// The protocol's own types are the judge of what was written.
    #[test]
    fn what_is_written_is_what_the_protocol_means() {
        let fate = Fate { outcome: "unavailable", actor: "agent", decision: Some("suggest"), fault: true };
        let span = Span {
            trace: [0xab; 16],
            id: [0x01; 8],
            parent: Some([0x02; 8]),
            operation: "cowork_propose".to_owned(),
            surface: "mcp",
            fate,
            ended: 1_700_000_000_000_000,
            took: Duration::from_micros(1_500),
        };
        let root = Span { parent: None, fate: Fate { fault: false, decision: None, ..fate }, ..span.clone() };
        let read: ExportTraceServiceRequest = serde_json::from_str(&encode("i", &[span, root])).unwrap();
        assert_eq!(read.resource_spans.len(), 1);
        let resource = read.resource_spans[0].resource.as_ref().unwrap();
        assert_eq!(resource.attributes.len(), 3);
        let spans = &read.resource_spans[0].scope_spans[0].spans;
        let (first, second) = (&spans[0], &spans[1]);
        assert_eq!((first.trace_id.as_slice(), first.span_id.as_slice(), first.parent_span_id.as_slice()), (&[0xab; 16][..], &[1; 8][..], &[2; 8][..]));
        assert_eq!((first.start_time_unix_nano, first.end_time_unix_nano), (1_699_999_999_998_500_000, 1_700_000_000_000_000_000));
        assert_eq!((first.kind, first.flags, first.name.as_str()), (2, 0x301, "cowork_propose"));
        assert_eq!(first.status.as_ref().unwrap().code, 2);
        let keys: Vec<&str> = first.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
        assert_eq!(keys, ["deskmate.operation", "deskmate.surface", "deskmate.actor.kind", "deskmate.outcome", "deskmate.decision"]);
        assert!(second.parent_span_id.is_empty());
        assert_eq!((second.flags, second.status.as_ref().unwrap().code), (1, 0));
    }
}
