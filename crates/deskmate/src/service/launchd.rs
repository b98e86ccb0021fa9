//! launchd: an agent of the user's own (macOS).

use deskmate_core::Result;

use super::{Run, Service, Steps, homeless};
use crate::config;

const LABEL: &str = "org.deskmate.desk";

pub(super) fn steps(service: &Service) -> Result<Steps> {
    let file = config::user_home().ok_or_else(homeless)?.join("Library").join("LaunchAgents").join(format!("{LABEL}.plist"));
    let domain = format!("gui/{}", rustix::process::getuid().as_raw());
    let target = format!("{domain}/{LABEL}");
    let path = file.display().to_string();
    Ok(Steps {
        manager: "launchd",
        file: Some((file, plist(service))),
        prepare: Vec::new(),
        answers: Run::new(&["launchctl", "print", &domain]),
        // One that is loaded already must go before it can be loaded anew.
        enable: vec![Run::or_not(&["launchctl", "bootout", &target]), Run::new(&["launchctl", "bootstrap", &domain, &path])],
        restart: Vec::new(),
        disable: vec![Run::or_not(&["launchctl", "bootout", &target])],
        forget: Vec::new(),
        state: vec![("state", Run::new(&["launchctl", "print", &target]))],
    })
}

/// The agent's text.
pub(super) fn plist(service: &Service) -> String {
    let words = [service.program.display().to_string()].into_iter().chain(service.arguments());
    let words = words.map(|word| format!("    <string>{}</string>", escape(&word))).collect::<Vec<_>>().join("\n");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \x20 <key>Label</key>\n\
         \x20 <string>{LABEL}</string>\n\
         \x20 <key>ProgramArguments</key>\n\
         \x20 <array>\n{words}\n\x20 </array>\n\
         \x20 <key>RunAtLoad</key>\n\
         \x20 <true/>\n\
         \x20 <key>KeepAlive</key>\n\
         \x20 <dict>\n\
         \x20   <key>SuccessfulExit</key>\n\
         \x20   <false/>\n\
         \x20 </dict>\n\
         \x20 <key>Umask</key>\n\
         \x20 <integer>63</integer>\n\
         \x20 <key>ProcessType</key>\n\
         \x20 <string>Background</string>\n\
         </dict>\n\
         </plist>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
