//! The one way out: a value for the server's own use.

use zeroize::Zeroizing;

use super::rows::{self, check_name, find};
use super::seal;
use crate::call::Cx;
use crate::{Error, Result, format_time};

/// How settings name a secret.
const SCHEME: &str = "secret:";

/// The name in a setting such as `secret:mail`; nothing where it is a plain value.
pub fn reference(setting: &str) -> Option<&str> {
    setting.strip_prefix(SCHEME)
}

/// The names in some settings, each checked: for whoever tells the safe what it uses.
pub fn named<'s>(settings: impl IntoIterator<Item = &'s str>) -> Result<Vec<String>> {
    let names = settings.into_iter().filter_map(reference);
    names.map(|name| check_name("secret", name).map(|()| name.to_owned())).collect()
}

/// The value of a secret, decrypted now. Only the desk itself gets it: an operation acts as its caller, and no caller does.
pub fn resolve(cx: &mut Cx<'_, '_>, name: &str) -> Result<Zeroizing<String>> {
    if !cx.actor.is_system() {
        return Err(Error::forbidden("values of secrets are for the server itself"));
    }
    check_name("secret", name)?;
    let again = format!("`deskmate secret set {name}` gives it a value");
    let Some(row) = find(cx.tx, name)? else {
        return Err(Error::not_found(format!("secret:{name} is named, but there is no secret {name}")).hint(again));
    };
    let Some((nonce, sealed)) = row.sealed else {
        let when = row.removed_at.map(format_time).unwrap_or_default();
        return Err(Error::not_found(format!("secret:{name} is still named, but the secret {name} was removed at {when}")).hint(again));
    };
    let key = rows::key(cx)?;
    seal::open(&key, name, row.version, &nonce, &sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_secrets_by_their_scheme() {
        assert_eq!((reference("secret:mail"), reference("mail"), reference("SECRET:mail")), (Some("mail"), None, None));
        assert_eq!(named(["secret:a", "plain", "secret:b"]).unwrap(), ["a", "b"]);
        let error = named(["secret:Not A Name"]).unwrap_err();
        assert!(!error.to_string().contains("Not A"), "{error}");
    }
}
