//! A scheduled task that starts the desk when the user signs in (Windows).

use super::{Run, Service, Steps};

const TASK: &str = "Deskmate";

pub(super) fn steps(service: &Service) -> Steps {
    let words = [service.program.display().to_string()].into_iter().chain(service.arguments());
    let command = words.map(|word| if word.contains([' ', '%']) { format!("\"{word}\"") } else { word }).collect::<Vec<_>>().join(" ");
    Steps {
        manager: "the task scheduler",
        file: None,
        prepare: Vec::new(),
        answers: Run::new(&["schtasks", "/Query", "/FO", "LIST"]),
        enable: vec![
            Run::new(&["schtasks", "/Create", "/TN", TASK, "/SC", "ONLOGON", "/RL", "LIMITED", "/TR", &command, "/F"]),
            Run::new(&["schtasks", "/Run", "/TN", TASK]),
        ],
        restart: Vec::new(),
        disable: vec![Run::or_not(&["schtasks", "/End", "/TN", TASK]), Run::or_not(&["schtasks", "/Delete", "/TN", TASK, "/F"])],
        forget: Vec::new(),
        state: vec![("task", Run::new(&["schtasks", "/Query", "/TN", TASK, "/FO", "LIST"]))],
    }
}
