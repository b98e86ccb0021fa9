//! What each service gets, above all of what an agent wrote to call, lead or fool somebody.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::letter::{Letter, Line};
use super::*;

const EVIL: &str = "@everyone <!channel> <@U123> **bold** [link](https://evil.example) <b>x</b> & `code` www.evil.example /start https://evil.example";

fn letter(texts: &[&str]) -> Letter {
    let line = |text: &&str| Line {
        text: (*text).to_owned(),
        page: Some("https://desk.example/requests/1".to_owned()),
        decide: Some("https://desk.example/decide?link=dml_abc".to_owned()),
    };
    Letter {
        id: "019b".to_owned(),
        urgent: true,
        title: "Deskmate: something needs you".to_owned(),
        lines: texts.iter().map(line).collect(),
        more: 2,
        inbox: Some("https://desk.example/".to_owned()),
    }
}

fn body(kind: ChannelKind, letter: &Letter, to: Option<&str>) -> Value {
    match render(kind, letter, to).unwrap() {
        Rendered::Json(body) => body,
        Rendered::Mail(mail) => json!(mail.text),
    }
}

/// Every text somewhere in a value.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(list) => list.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

const KINDS: [(ChannelKind, Option<&str>); 7] = [
    (ChannelKind::Email, Some("ada@example.org")),
    (ChannelKind::Slack, None),
    (ChannelKind::Teams, None),
    (ChannelKind::Discord, None),
    (ChannelKind::Mattermost, None),
    (ChannelKind::Ntfy, Some("ada-desk")),
    (ChannelKind::Telegram, Some("4711")),
];

#[test]
fn nobody_is_called_and_nothing_leads_elsewhere() {
    for (kind, to) in KINDS {
        let body = body(kind, &letter(&[EVIL]), to);
        let said = texts(&body);
        for bad in ["@everyone", "<!channel>", "<@U123", "&lt;!channel", "://evil", "www.evil", " /start"] {
            assert!(!said.contains(bad), "{}: {bad} in {said}", kind.name());
        }
        assert!(said.contains("everyone") && said.contains("https://desk.example/requests/1"), "{}: {said}", kind.name());
        assert!(said.contains("https://desk.example/decide?link=dml_abc"), "{}: {said}", kind.name());
        assert!(said.contains("and 2 more"), "{}: {said}", kind.name());
    }
}

#[test]
fn slack_gets_blocks_of_plain_text() {
    let body = body(ChannelKind::Slack, &letter(&["*x* <b> & :tada:"]), None);
    assert_eq!(body["blocks"][0], json!({ "type": "header", "text": { "type": "plain_text", "text": "Deskmate: something needs you", "emoji": false } }));
    assert_eq!(body["blocks"][1]["text"], json!({ "type": "plain_text", "text": "*x* <\u{200b}b> & :tada:", "emoji": false }));
    let links = "<https://desk.example/requests/1|Look at it> · <https://desk.example/decide?link=dml_abc|Decide it, once and within half an hour>";
    assert_eq!(body["blocks"][2]["text"], json!({ "type": "mrkdwn", "text": links, "verbatim": true }));
    assert_eq!((&body["unfurl_links"], &body["unfurl_media"]), (&json!(false), &json!(false)));
    assert!(body["text"].as_str().unwrap().contains("*x* &lt;\u{200b}b&gt; &amp; :tada:"), "{body}");
}

#[test]
fn teams_gets_an_adaptive_card_without_markup() {
    let body = body(ChannelKind::Teams, &letter(&["**x** <at>Ada</at>"]), None);
    assert_eq!((&body["type"], &body["attachments"][0]["contentType"]), (&json!("message"), &json!("application/vnd.microsoft.card.adaptive")));
    let card = &body["attachments"][0]["content"];
    assert_eq!((&card["type"], &card["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    assert_eq!(card["body"][1]["inlines"][0]["text"], "**x** <\u{200b}at>Ada<\u{200b}/at>");
    assert_eq!(card["body"][1]["type"], "RichTextBlock");
    assert_eq!(card["body"][2]["actions"][0], json!({ "type": "Action.OpenUrl", "title": "Look at it", "url": "https://desk.example/requests/1" }));
    assert!(card.get("msteams").is_none(), "there is no list of names");
}

#[test]
fn discord_calls_nobody_and_shows_no_previews() {
    let body = body(ChannelKind::Discord, &letter(&["**x** _y_ ||z||"]), None);
    assert_eq!((&body["allowed_mentions"], &body["flags"]), (&json!({ "parse": [] }), &json!(4)));
    assert!(body["content"].as_str().unwrap().contains("\\*\\*x\\*\\* \\_y\\_ \\|\\|z\\|\\|"), "{body}");
}

#[test]
fn mattermost_goes_where_it_is_told() {
    assert!(body(ChannelKind::Mattermost, &letter(&["x"]), None).get("channel").is_none());
    assert_eq!(body(ChannelKind::Mattermost, &letter(&["x"]), Some("@ada"))["channel"], "@ada");
}

#[test]
fn ntfy_opens_the_request_and_says_how_urgent_it_is() {
    let body = body(ChannelKind::Ntfy, &letter(&["x"]), Some("ada-desk"));
    assert_eq!((&body["topic"], &body["priority"], &body["click"]), (&json!("ada-desk"), &json!(5), &json!("https://desk.example/requests/1")));
    assert_eq!(body["actions"][1], json!({ "action": "view", "label": "Decide", "url": "https://desk.example/decide?link=dml_abc" }));
    let many = super::tests::body(ChannelKind::Ntfy, &letter(&["x", "y"]), Some("ada-desk"));
    assert_eq!(many["click"], "https://desk.example/");
    assert!(render(ChannelKind::Ntfy, &letter(&["x"]), None).is_err());
}

#[test]
fn telegram_reads_no_markup_in_what_others_wrote() {
    let body = body(ChannelKind::Telegram, &letter(&["</code><a href=\"x\">"]), Some("4711"));
    assert_eq!((&body["chat_id"], &body["parse_mode"]), (&json!(4711), &json!("HTML")));
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("<code>&lt;\u{200b}/code&gt;&lt;\u{200b}a href=&quot;x&quot;&gt;</code>"), "{text}");
    assert_eq!(super::tests::body(ChannelKind::Telegram, &letter(&["x"]), Some("@desk"))["chat_id"], "@desk");
}

#[test]
fn mail_is_plain_text_with_a_subject_of_ours() {
    let Rendered::Mail(mail) = render(ChannelKind::Email, &letter(&["code asks: x"]), Some("ada@example.org")).unwrap() else { panic!() };
    assert_eq!((mail.id.as_str(), mail.subject.as_str(), mail.urgent), ("019b", "Deskmate: something needs you", true));
    assert!(mail.text.contains("- code asks: x\n  Look at it: https://desk.example/requests/1\n"), "{}", mail.text);
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = "é|".repeat(3_000);
    let letter = letter(&[long.as_str(); 30]);
    for (kind, max) in [(ChannelKind::Slack, 60_000), (ChannelKind::Teams, 28_000), (ChannelKind::Discord, 2_000), (ChannelKind::Mattermost, 4_000)] {
        let body = body(kind, &letter, None);
        let said = texts(&body);
        assert!(said.contains("(cut)") && said.contains(" more"), "{}: {said}", kind.name());
        let size = if kind == ChannelKind::Discord || kind == ChannelKind::Mattermost { said.chars().count() } else { body.to_string().len() };
        assert!(size <= max, "{}: {size}", kind.name());
    }
    let ntfy = body(ChannelKind::Ntfy, &letter, Some("t"));
    assert!(ntfy["message"].as_str().unwrap().len() <= 4_096 && ntfy["message"].as_str().unwrap().ends_with("(cut)"));
    let telegram = body(ChannelKind::Telegram, &letter, Some("1"));
    assert!(telegram["text"].as_str().unwrap().chars().count() <= 4_096, "{telegram}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Whatever somebody writes, every service gets a message that names nobody and fits.
    #[test]
    fn any_text_is_harmless(text in "(?s).{0,300}") {
        for (kind, to) in KINDS {
            let said = texts(&body(kind, &letter(&[&text]), to));
            for name in ["@everyone", "@here", "@channel", "<!", "<@", "<#"] {
                prop_assert!(!said.contains(name) || "https://desk.example".contains(name), "{}: {name:?} in {said:?}", kind.name());
            }
        }
    }
}
