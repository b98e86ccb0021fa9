//! Every bound in one place, so that it can be shown, documented and tested.

use std::time::Duration;

/// A name: an agent, a project, a group, a reservation.
pub const NAME_CHARS_MAX: usize = 128;
/// A title or a subject.
pub const TITLE_CHARS_MAX: usize = 500;
/// A message, a description, a result.
pub const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// A note on a task.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// The input of any operation, as JSON.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// A document of policies, mappings and settings.
pub const POLICY_BYTES_MAX: usize = 960 * 1024;
/// A line of MCP over standard streams or the local socket: what is longer is dropped, and the stream goes on.
pub const MCP_LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The body of a request to MCP over HTTP.
pub const MCP_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Callers on the local socket at a time.
pub const SOCKET_CALLERS_MAX: usize = 512;
/// What a hook may tell over HTTP: the answer of a tool is among it, and dropped.
pub const HOOK_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rows of another server that one call brings in.
pub const IMPORT_ROWS_MAX: usize = 500;
/// How deep the input may nest.
pub const INPUT_DEPTH_MAX: usize = 64;
/// A caller's key for doing something once.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// How long such a key is kept.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_hours(7 * 24);
/// How long somebody may stand in for a person.
pub const STAND_IN: Duration = Duration::from_hours(90 * 24);
/// People whom one event names.
pub const PEOPLE_TOLD_MAX: usize = 200;
/// Arguments of a prompt.
pub const PROMPT_ARGUMENTS_MAX: usize = 20;
/// Rows in one page of a list.
pub const PAGE_MAX: u32 = 200;
/// Rows in one page when the caller names no number.
pub const PAGE_DEFAULT: u32 = 50;
/// How many bytes of content one answer holds; the rest comes with the next page.
pub const PAGE_BYTES_MAX: usize = 512 * 1024;
/// How long a wait holds.
pub const WAIT_MAX: Duration = Duration::from_secs(25);
/// Recipients of one message, members of one group.
pub const RECIPIENTS_MAX: usize = 200;
/// Tasks that one task may wait for.
pub const BLOCKERS_MAX: usize = 100;
/// Tasks that may wait for one task.
pub const DEPENDENTS_MAX: usize = 1_000;
/// Fields of one record that one call names.
pub const EDIT_FIELDS_MAX: usize = 20;
/// Events that one notification names; further ones are counted.
pub const NOTIFICATION_ITEMS_MAX: usize = 20;
/// Events that a digest keeps, so that what was decided before it goes out can be left out.
pub const DIGEST_ITEMS_MAX: usize = 500;
/// How much of a text that somebody wrote a notification shows.
pub const NOTIFICATION_TEXT_CHARS_MAX: usize = 200;
/// Channels of the configuration.
pub const NOTIFICATION_CHANNELS_MAX: usize = 20;
/// Filters of the inbox that one person keeps.
pub const KEPT_FILTERS_MAX: i64 = 50;
/// Ways in which one person is told.
pub const SUBSCRIPTIONS_MAX: i64 = 20;
/// Where a person is reached by an outlet: an e-mail address, a topic, a chat.
pub const ADDRESS_CHARS_MAX: usize = 254;
/// Domains that one of those ways names.
pub const SUBSCRIPTION_DOMAINS_MAX: usize = 50;
/// How long a link to decide by is good.
pub const DECISION_LINK: Duration = Duration::from_mins(30);
/// Refused tries of one link that are told one by one.
pub const DECISION_LINK_REFUSALS_MAX: i64 = 10;
/// How soon after a test of one's own the next one may follow.
pub const SUBSCRIPTION_TEST_EVERY: Duration = Duration::from_secs(5);
/// Groups that one actor may be in.
pub const GROUPS_OF_MEMBER_MAX: usize = 100;
/// Messages that one call acknowledges.
pub const ACKNOWLEDGED_MAX: usize = 200;
/// Paths or globs in one reservation.
pub const PATHS_MAX: usize = 100;
/// A path or a glob.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Reservations that stand in one project at once.
pub const RESERVATIONS_MAX: usize = 1_000;
/// Paths and globs that stand in one project at once: a new reservation is compared with each.
pub const RESERVED_PATHS_MAX: usize = 2_000;
/// Servers behind the desk.
pub const MOUNTS_MAX: usize = 100;
/// Arguments, variables, headers, verbs or hidden tools of one of them.
pub const MOUNT_PARTS_MAX: usize = 200;
/// Tools of one of them.
pub const MOUNT_TOOLS_MAX: usize = 1_000;
/// The definition of a tool, as JSON.
pub const TOOL_BYTES_MAX: usize = 64 * 1024;
/// What a server behind the desk answers.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What came of a held call, as JSON, kept for its caller: any answer, with what the desk puts into it.
pub const CALL_RESULT_BYTES_MAX: usize = ANSWER_BYTES_MAX + 256 * 1024;
/// Folders that are open to agents.
pub const ROOTS_MAX: usize = 100;
/// Globs that one of them leaves out.
pub const ROOT_DENY_MAX: usize = 200;
/// Parts of a path beneath a root.
pub const PATH_PARTS_MAX: usize = 100;
/// Entries in one page of a folder.
pub const FILES_PAGE_MAX: u32 = 2_000;
/// How much of a file one answer holds.
pub const FILE_READ_BYTES_MAX: u64 = 400_000;
/// Lines in one page of a tree of names.
pub const TREE_LINES_MAX: u32 = 5_000;
/// Folders in one page of sizes; groups of files with the same content, or paths of one, in one page of those.
pub const SCAN_PAGE_MAX: u32 = 1_000;
/// A cursor that holds a path. Looks go by handles, so they come to longer paths than callers may write.
pub const PATH_CURSOR_BYTES_MAX: usize = 64 * 1024;
/// What a page of a look holds that was too long for a call and became a job, as JSON.
pub const LATE_PAGE_BYTES_MAX: usize = 900 * 1024;
/// Looks at whole trees of one agent that are under way at once.
pub const SCANS_MAX: i64 = 8;
/// The address of a page.
pub const URL_BYTES_MAX: usize = 8_000;
/// A regular expression that is sought in files.
pub const SEARCH_TEXT_BYTES_MAX: usize = 1_000;
/// Steps that a caller names in one plan.
pub const PLAN_WANTED_MAX: usize = 1_000;
/// Steps that one plan may have.
pub const PLAN_STEPS_MAX: i64 = 1_000_000;
/// Steps that are kept, begun and ended together, and how many bytes their JSON may have.
pub const PLAN_PART_STEPS: usize = 1_000;
/// Bytes of a step's difference that a plan shows with its steps, and that one page of it holds.
pub const PLAN_DIFF_SHOWN: usize = 64 * 1024;
/// See [`PLAN_PART_STEPS`].
pub const PLAN_PART_BYTES: usize = 1024 * 1024;
/// Paths of a plan that policy and its request see; the plan itself shows all.
pub const PLAN_PATHS_SHOWN: usize = 100;
/// Plans of one agent that are being made at once.
pub const PLANNING_MAX: i64 = 8;
/// What goes into a document, as JSON.
pub const PLAN_DOCUMENT_BYTES_MAX: usize = 512 * 1024;
/// The code of a program: people read all of it.
pub const PROGRAM_BYTES_MAX: usize = 48 * 1024;
/// Folders that a program may read, and as many that it may change.
pub const PROGRAM_FOLDERS_MAX: usize = 20;
/// How long a program may take if nobody says, in seconds.
pub const PROGRAM_SECONDS_USUAL: u32 = 30;
/// How long a program may take at most.
pub const PROGRAM_SECONDS_MAX: u32 = 300;
/// Folders to which one job of a program is narrowed.
pub const PROGRAM_ROOTS_MAX: usize = 100;
/// Jobs of one paired program that wait or run at once.
pub const PROGRAM_JOBS_MAX: usize = 100;
/// How often a job of a program is tried when something passing stood in its way.
pub const PROGRAM_ATTEMPTS_MAX: i64 = 3;
/// The value of a secret.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Secrets of a desk.
pub const SECRETS_MAX: i64 = 1_000;
/// Leases: the shortest, the usual and the longest time.
pub const LEASE_MIN: Duration = Duration::from_secs(5);
/// What a claim gets when the caller names no time.
pub const LEASE_DEFAULT: Duration = Duration::from_mins(10);
/// The longest a claim or reservation stands without a sign of life.
pub const LEASE_MAX: Duration = Duration::from_hours(24);
/// How often a job is tried.
pub const JOB_ATTEMPTS_MAX: i64 = 25;
/// How often a job can run at all, with the times that people send it round again.
pub const JOB_RUNS_MAX: i64 = 100;
/// How far ahead a job can be scheduled.
pub const JOB_AHEAD_MAX: Duration = Duration::from_hours(10 * 366 * 24);
/// The shortest time between two runs of periodic work.
pub const JOB_PERIOD_MIN: Duration = Duration::from_secs(1);
/// How long the first retry of a job waits; each further one waits twice as long.
pub const JOB_BACKOFF_MIN: Duration = Duration::from_secs(2);
/// The longest that a retry waits, before chance adds up to a quarter.
pub const JOB_BACKOFF_MAX: Duration = Duration::from_hours(1);
/// The longest that somebody outside can put the next attempt of a job off.
pub const JOB_PUT_OFF_MAX: Duration = Duration::from_hours(24);
/// Where a resumable job stands, as JSON. It is written with heartbeats, so it is small.
pub const JOB_STEP_BYTES_MAX: usize = 512 * 1024;
/// How much of an attempt's error is kept.
pub const JOB_ERROR_BYTES_MAX: usize = 16 * 1024;
/// Jobs that are claimed, rescued or deleted in one transaction.
pub const JOB_SLICE_MAX: u32 = 500;
/// Refusals of one caller that are told one by one in a minute; further ones are counted in a single event.
pub const REFUSALS_PER_MINUTE: u32 = 20;
/// Unacknowledged messages that one recipient may have before senders are asked to wait.
pub const UNREAD_MAX: i64 = 100_000;
/// What an agent proposes to change, as JSON, and the context of a handoff.
pub const CHANGE_BYTES_MAX: usize = 256 * 1024;
/// Why an agent wants something, and what a person says to it.
pub const REASONING_BYTES_MAX: usize = 32 * 1024;
/// Items of a list that comes with a proposal or a handoff: criteria, things that were tried, open requests.
pub const PACKET_ITEMS_MAX: usize = 100;
/// Instructions that one call acknowledges.
pub const INSTRUCTIONS_ACKNOWLEDGED_MAX: usize = 200;
/// Requests that one bulk call decides.
pub const BULK_MAX: usize = 500;
/// Votes on one request that are looked at.
pub const VOTES_MAX: u32 = 500;
/// The longest that a standing approval holds, in hours.
pub const STANDING_HOURS_MAX: u32 = 24;
/// Changed fields of a request that are shown one by one; the whole change is shown beside them.
pub const CHANGES_SHOWN_MAX: usize = 500;
/// Earlier requests of a requester that are looked at for similar ones, and how many of those are shown.
pub const SIMILAR_LOOKED_MAX: u32 = 200;
/// See `SIMILAR_LOOKED_MAX`.
pub const SIMILAR_SHOWN_MAX: usize = 10;
/// Earlier acts on which a drafted rule is tried.
pub const DRAFT_LOOKED_MAX: u32 = 500;
/// A text with policies, mappings and settings.
pub const POLICY_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Policies in force at once.
pub const POLICIES_MAX: usize = 1_000;
/// Rules of one policy.
pub const RULES_MAX: usize = 5_000;
/// Mappings in force at once.
pub const MAPPINGS_MAX: usize = 10_000;
/// Domains with settings of their own.
pub const DOMAIN_SETTINGS_MAX: usize = 1_000;
/// The condition of a rule.
pub const CONDITION_CHARS_MAX: usize = 2_000;
/// Values in the arguments that a condition is given, how deep they nest, and the bytes of their texts. Beyond, the
/// condition cannot be evaluated, and its rule fires.
pub const CONDITION_VALUES_MAX: usize = 1_000;
/// See `CONDITION_VALUES_MAX`.
pub const CONDITION_DEPTH_MAX: usize = 16;
/// See `CONDITION_VALUES_MAX`.
pub const CONDITION_BYTES_MAX: usize = 64 * 1024;
/// Changed paths that field rules look at. A larger change is denied where a policy has such rules.
pub const CHANGED_PATHS_MAX: usize = 2_000;
/// Rules that one decision names as fired.
pub const HITS_MAX: usize = 100;
/// How long a caller over HTTP may take for the head of a request, from its first byte, and for shaking hands over TLS.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long it may take for the body, from the end of the head.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long it may leave an answer unread when no more of it fits on the way.
pub const UNREAD_TIME_MAX: Duration = Duration::from_mins(1);
/// How long a connection stays open without a request. Longer than any client keeps one, so that none is closed just as a
/// request is on its way.
pub const IDLE_TIME_MAX: Duration = Duration::from_mins(10);
/// Connections over the network that are open at once, where the system lets the server open twice as many files.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Connections of the command line that are open at once, apart from those.
pub const LOCAL_CONNECTIONS_MAX: usize = 256;
/// Live streams and subscriptions that are open with one credential at once: far more than a person has tabs.
pub const STREAMS_MAX: usize = 32;
/// The same for all who only say who they are, together, because a name costs nothing.
pub const UNVERIFIED_STREAMS_MAX: usize = 256;
/// Calls of one credential that wait at once until something happens: more than an agent asks for at a time, and far fewer than
/// there are connections.
pub const WAITS_MAX: usize = 128;
/// The same for all who only say who they are, together.
pub const UNVERIFIED_WAITS_MAX: usize = 512;

/// Agents that the desk runs.
pub const AGENTS_MAX: i64 = 20_000;
/// Steps of one of them.
pub const AGENT_STEPS_MAX: usize = 100;
/// What one of them is, as JSON.
pub const AGENT_BYTES_MAX: usize = 256 * 1024;
/// Items that one step works on.
pub const AGENT_ITEMS_MAX: usize = 10_000;
/// Runs of one agent that have not ended.
pub const AGENT_OPEN_RUNS_MAX: i64 = 100;
/// Files that a run's folder begins with.
pub const AGENT_FILES_MAX: usize = 50;
/// One of them.
pub const AGENT_FILE_BYTES_MAX: usize = 128 * 1024;
/// Runs that one run starts.
pub const AGENT_CHILDREN_MAX: i64 = 20;
/// How deep runs start runs.
pub const AGENT_DEPTH_MAX: i64 = 3;
/// Runs that the status of an agent shows.
pub const AGENT_RUNS_SHOWN: i64 = 10;
/// What came of a run, as JSON.
pub const AGENT_RESULT_BYTES_MAX: usize = 256 * 1024;

/// How long a node is there without a sign of life.
pub const NODE_LEASE: Duration = Duration::from_secs(30);
/// How long a node that is gone is listed.
pub const NODE_KEPT: Duration = Duration::from_hours(30 * 24);
/// For how long what was deployed on servers without a name waits for one of them, before nodes do it.
pub const NODE_NAMELESS_KEPT: Duration = Duration::from_mins(1);
/// Labels of a node, and those that runs ask for.
pub const NODE_LABELS_MAX: usize = 20;
/// One of them.
pub const NODE_LABEL_CHARS_MAX: usize = 63;
/// Places with runs that wait, among which a node looks for those that are for it.
pub const NODE_PLACES_MAX: usize = 1_000;

/// What a model answers about a description.
pub const SUGGESTED_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an agent template's text, and files of a desk's own.
pub const AGENT_TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// See [`AGENT_TEMPLATE_BYTES_MAX`].
pub const AGENT_TEMPLATE_FILES_MAX: usize = 100;
/// Bytes of a framework's text, controls of one, and files of a desk's own.
pub const COMPLIANCE_TEXT_BYTES_MAX: usize = 256 * 1024;
/// See [`COMPLIANCE_TEXT_BYTES_MAX`].
pub const COMPLIANCE_CONTROLS_MAX: usize = 500;
/// See [`COMPLIANCE_TEXT_BYTES_MAX`].
pub const COMPLIANCE_FILES_MAX: usize = 100;
/// Events that one walk of a compliance check looks at, and all walks of a report together.
pub const COMPLIANCE_WALK_MAX: usize = 10_000;
/// See [`COMPLIANCE_WALK_MAX`].
pub const COMPLIANCE_LOOK_MAX: usize = 60_000;
/// Days that a report looks back at most.
pub const COMPLIANCE_DAYS_MAX: u32 = 400;

/// Lines that one call of an agent's log answers.
pub const AUDIT_LOG_MAX: i64 = 1_000;
/// Events of an agent's log whose proofs are checked at once.
pub const AUDIT_VERIFY_MAX: i64 = 200;
/// Events that it looks at while it seeks those that fit.
pub const AUDIT_SCAN_MAX: usize = 2_000;
/// Events that its summary counts, each of what the agent did and of what was done to it.
pub const AUDIT_SUMMARY_MAX: u32 = 2_000;
/// People that an approval names.
pub const APPROVERS_MAX: usize = 20;
/// Hours that an approval waits: 30 days.
pub const APPROVAL_HOURS_MAX: f64 = 720.0;
