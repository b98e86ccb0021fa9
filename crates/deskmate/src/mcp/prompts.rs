//! Prompts that people can pick in their client. What is filled in stands as a quoted text: it is what somebody gave, and says nothing
//! to the desk. Nothing that is stored gets into a prompt.

mod agents;
mod bridge;

use std::fmt::Write as _;

use deskmate_core::limits::{NOTE_BYTES_MAX, PROMPT_ARGUMENTS_MAX};
use rmcp::ErrorData;
use rmcp::model::{CacheScope, GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::handler::LIST_FRESH_MS;
use super::tools::Tools;

struct Declared {
    name: &'static str,
    title: &'static str,
    says: &'static str,
    /// The operation without which the prompt makes no sense.
    needs: &'static str,
    arguments: &'static [Argument],
    text: fn(&Filled<'_>) -> String,
}

struct Argument {
    name: &'static str,
    says: &'static str,
    required: bool,
    /// The only values that it has, if those are named.
    one_of: &'static [&'static str],
}

impl Argument {
    const fn required(name: &'static str, says: &'static str) -> Self {
        Self { name, says, required: true, one_of: &[] }
    }

    const fn optional(name: &'static str, says: &'static str) -> Self {
        Self { name, says, required: false, one_of: &[] }
    }

    const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.one_of = values;
        self
    }

    fn described(&self) -> String {
        let mut says = self.says.to_owned();
        if !self.one_of.is_empty() {
            let _ = write!(says, " One of {}.", self.one_of.join(", "));
        }
        says
    }
}

/// What a prompt is made of: what was given for it, and what tools are called on this endpoint.
struct Filled<'a> {
    given: Vec<(&'static str, &'a str)>,
    tools: &'a Tools,
}

impl Filled<'_> {
    fn given(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// What was given, in quotes that it cannot leave.
    fn quoted(&self, name: &str) -> String {
        Value::from(self.given(name).unwrap_or_default()).to_string()
    }

    /// What an operation is called here.
    fn tool<'t>(&'t self, operation: &'t str) -> &'t str {
        self.tools.name_of(operation).unwrap_or(operation)
    }
}

/// The prompts that this desk can serve.
pub(super) struct Prompts {
    declared: Vec<&'static Declared>,
}

impl Prompts {
    /// Those whose operation is mounted.
    pub(super) fn new(tools: &Tools) -> Self {
        let all = bridge::DECLARED.iter().chain(agents::DECLARED);
        Self { declared: all.filter(|declared| tools.name_of(declared.needs).is_some()).collect() }
    }

    /// All prompts.
    pub(super) fn list(&self) -> ListPromptsResult {
        let prompts = self.declared.iter().map(|declared| {
            let arguments = declared.arguments.iter().map(|one| PromptArgument::new(one.name).with_description(one.described()).with_required(one.required));
            Prompt::new(declared.name, Some(declared.says), Some(arguments.collect())).with_title(declared.title)
        });
        ListPromptsResult::with_all_items(prompts.collect()).with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Public)
    }

    /// One prompt with its arguments filled in.
    pub(super) fn get(&self, request: &GetPromptRequestParams, tools: &Tools) -> Result<GetPromptResult, ErrorData> {
        let refused = |text: String| ErrorData::invalid_params(text, None);
        let Some(declared) = self.declared.iter().find(|declared| declared.name == request.name) else {
            return Err(refused(format!("there is no prompt {}", request.name)));
        };
        let arguments = request.arguments.as_ref();
        if arguments.is_some_and(|given| given.len() > PROMPT_ARGUMENTS_MAX) {
            return Err(refused(format!("a prompt takes at most {PROMPT_ARGUMENTS_MAX} arguments")));
        }
        if let Some(unknown) = arguments.and_then(|given| given.keys().find(|name| declared.arguments.iter().all(|one| one.name != name.as_str()))) {
            return Err(refused(format!("the prompt {} has no argument {unknown:?}", declared.name)));
        }
        let mut given = Vec::new();
        for one in declared.arguments {
            let text = match arguments.and_then(|given| given.get(one.name)) {
                None => "",
                Some(value) => value.as_str().ok_or_else(|| refused(format!("the argument {} must be a text", one.name)))?,
            };
            if text.trim().is_empty() {
                if one.required {
                    return Err(refused(format!("the argument {} is missing", one.name)));
                }
                continue;
            }
            if text.len() > NOTE_BYTES_MAX {
                return Err(refused(format!("the argument {} must be at most {NOTE_BYTES_MAX} bytes", one.name)));
            }
            if !one.one_of.is_empty() && !one.one_of.contains(&text) {
                return Err(refused(format!("the argument {} must be one of {}", one.name, one.one_of.join(", "))));
            }
            given.push((one.name, text));
        }
        let text = (declared.text)(&Filled { given, tools });
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(declared.says))
    }
}
