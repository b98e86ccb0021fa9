//! The trace that a request belongs to: the W3C header `traceparent`, and where a call finds it. It travels with the task
//! that serves the request, so that calls need not carry what only spans want to know.

use std::future::Future;

use axum::http::HeaderMap;
use data_encoding::HEXLOWER;

/// The header, and the name that MCP has for the same among the metadata of a request.
pub(crate) const NAME: &str = "traceparent";

/// The span that called us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    /// Whether its trace is being kept; if not, nobody wants our part of it either.
    pub(super) sampled: bool,
}

impl Parent {
    /// Reads `00-TRACE-SPAN-FLAGS`. What is not understood counts as not sent, as the standard wants it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let version: [u8; 1] = bytes(version)?;
        // A later version may have more behind what we know.
        if version == [0xff] || (version == [0] && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (bytes(trace)?, bytes(span)?, bytes::<1>(flags)?);
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }

    /// The trace of an HTTP request. Two headers are as good as none.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(NAME).iter();
        let only = all.next().filter(|_| all.next().is_none())?;
        Self::parse(only.to_str().ok()?)
    }
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}

tokio::task_local! {
    static PARENT: Option<Parent>;
}

/// Does something as part of a trace.
pub(crate) fn within<F: Future>(parent: Option<Parent>, work: F) -> impl Future<Output = F::Output> {
    PARENT.scope(parent, work)
}

/// The trace that this task works for.
pub(super) fn current() -> Option<Parent> {
    PARENT.try_with(|parent| *parent).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_what_the_standard_allows_is_a_parent() {
        let parent = Parent::parse(GOOD).unwrap();
        assert_eq!((HEXLOWER.encode(&parent.trace), HEXLOWER.encode(&parent.span)), ("4bf92f3577b34da6a3ce929d0e0e4736".into(), "00f067aa0ba902b7".into()));
        assert!(parent.sampled);
        assert!(!Parent::parse(&GOOD.replace("-01", "-00")).unwrap().sampled);
        assert_eq!(Parent::parse(&GOOD.replacen("00-", "cc-", 1).replace("-01", "-01-more")), Some(parent), "a later version");
        for bad in [
            "",
            "x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        ] {
            assert_eq!(Parent::parse(bad), None, "{bad}");
        }
        let mut headers = HeaderMap::new();
        headers.append(NAME, GOOD.parse().unwrap());
        assert!(Parent::of(&headers).is_some());
        headers.append(NAME, GOOD.parse().unwrap());
        assert!(Parent::of(&headers).is_none(), "two are as good as none");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_text_is_read_or_passed_over(text in "[0-9a-fA-F\u{e4}-]{0,60}") {
            if let Some(parent) = Parent::parse(&text) {
                proptest::prop_assert!(parent.trace != [0; 16] && parent.span != [0; 8]);
            }
        }
    }

    #[tokio::test]
    async fn a_task_knows_its_trace_and_no_other_does() {
        let parent = Parent::parse(GOOD);
        assert_eq!(within(parent, async { current() }).await, parent);
        assert_eq!(within(None, async { current() }).await, None);
        assert_eq!(current(), None);
    }
}
