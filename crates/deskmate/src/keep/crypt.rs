//! Encryption of a backup, with the age format: anybody's `age` can open it too.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, Encryptor, IdentityFile, x25519};
use deskmate_core::{Error, Result};

use super::at;

/// The first bytes of every age file.
const MAGIC: &[u8] = b"age-encryption.org/v1";
/// A passphrase may be made this much harder to guess than this machine would make it (2^22 is some 16 s of work).
const WORK_FACTOR_MAX: u8 = 22;

/// A passphrase.
pub(crate) type Secret = SecretString;

/// How a backup is closed.
pub(crate) enum Key {
    /// Not at all.
    Open,
    /// With a passphrase.
    Passphrase(Secret),
    /// To whoever holds the other half.
    Recipient(Box<x25519::Recipient>),
}

impl Key {
    /// The name of the way, for answers.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Open => "no",
            Self::Passphrase(_) => "with a passphrase",
            Self::Recipient(_) => "to a recipient",
        }
    }

    pub(super) fn encryptor(self) -> Result<Option<Encryptor>> {
        match self {
            Self::Open => Ok(None),
            Self::Passphrase(passphrase) => Ok(Some(Encryptor::with_user_passphrase(passphrase))),
            Self::Recipient(recipient) => {
                Encryptor::with_recipients(std::iter::once(&*recipient as _)).map(Some).map_err(|error| Error::invalid("recipient", error.to_string()))
            }
        }
    }
}

/// Reads an `age1…` recipient.
pub(crate) fn recipient(text: &str) -> Result<Key> {
    let parsed = text.trim().parse::<x25519::Recipient>();
    parsed.map(|recipient| Key::Recipient(Box::new(recipient))).map_err(|why| Error::invalid("recipient", format!("{why}: it must be an age1… public key")))
}

/// Opens a backup for reading, decrypting it if it is encrypted. `ask` is called only where a passphrase is needed.
pub(super) fn open(path: &Path, identity: Option<&Path>, ask: &mut dyn FnMut() -> Result<Secret>) -> Result<Box<dyn Read>> {
    let mut file = File::open(path).map_err(at(path))?;
    let mut start = Vec::new();
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut start).map_err(at(path))?;
    file.rewind().map_err(at(path))?;
    let reader = BufReader::with_capacity(128 * 1024, file);
    if start != MAGIC {
        return Ok(Box::new(reader));
    }
    let decryptor = Decryptor::new_buffered(reader).map_err(|error| refused(&error))?;
    if decryptor.is_scrypt() {
        let mut key = age::scrypt::Identity::new(ask()?);
        key.set_max_work_factor(WORK_FACTOR_MAX);
        let plain = decryptor.decrypt(std::iter::once(&key as _)).map_err(|error| match error {
            DecryptError::KeyDecryptionFailed | DecryptError::DecryptionFailed | DecryptError::NoMatchingKeys => {
                Error::invalid("passphrase", "is wrong, or the first lines of the backup are damaged")
            }
            other => refused(&other),
        })?;
        return Ok(Box::new(plain));
    }
    let Some(identity) = identity else {
        return Err(Error::invalid("backup", "is encrypted to a recipient").hint("name the file with the AGE-SECRET-KEY-… of that recipient with --identity"));
    };
    let name = identity.display().to_string();
    let keys = IdentityFile::from_file(name.clone()).map_err(at(identity))?.into_identities();
    let keys = keys.map_err(|error| Error::invalid("identity", format!("{name}: {error}")))?;
    let plain = decryptor.decrypt(keys.iter().map(|key| &**key as _)).map_err(|error| match error {
        DecryptError::NoMatchingKeys => Error::invalid("identity", format!("{name} holds no key that opens this backup")),
        other => refused(&other),
    })?;
    Ok(Box::new(plain))
}

fn refused(error: &DecryptError) -> Error {
    Error::invalid("backup", format!("cannot be decrypted: {error}"))
}
