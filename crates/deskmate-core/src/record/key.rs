//! The key that signs checkpoints, and the keys that are believed.

use std::sync::Arc;

use data_encoding::BASE64;
use ed25519_dalek::SigningKey as Ed25519;
use signed_note::{Note, Signer, StandardSigner, StandardVerifier, VerifierList};
use tlog_tiles::{Checkpoint, Hash};

use crate::{Code, Error, Result};

/// The secret half, in the text form of C2SP signed notes.
pub struct SigningKey {
    signer: StandardSigner,
    origin: String,
    public: String,
}

impl SigningKey {
    /// Makes the text of a new key from 32 unguessable bytes.
    pub fn generate(origin: &str, seed: &[u8; 32]) -> String {
        let public = public_key(origin, seed);
        let id = public.split('+').nth(1).unwrap_or_default();
        let mut key = vec![1_u8];
        key.extend_from_slice(seed);
        format!("PRIVATE+KEY+{origin}+{id}+{}", BASE64.encode(&key))
    }

    /// Reads a key from its text.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let malformed = || Error::new(Code::Internal, "the record's signing key is malformed").hint("restore record.key from a backup");
        let signer = StandardSigner::new(text).map_err(|_| malformed())?;
        // The base64 of the key may itself hold a plus sign.
        let key = text.splitn(5, '+').nth(4).and_then(|key| BASE64.decode(key.as_bytes()).ok()).ok_or_else(malformed)?;
        let seed: [u8; 32] = key.get(1..).and_then(|seed| seed.try_into().ok()).ok_or_else(malformed)?;
        let origin = signer.name().to_string();
        let public = public_key(&origin, &seed);
        Ok(Self { signer, origin, public })
    }

    /// The name of the log, first line of its checkpoints.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The public half, in the text form that verifiers take.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs a tree: the exact bytes of a C2SP checkpoint.
    pub fn checkpoint(&self, size: u64, root: Hash) -> Result<String> {
        let checkpoint = Checkpoint::new(&self.origin, size, root, "").map_err(|_| unsigned("malformed"))?;
        self.note(&checkpoint.to_bytes())
    }

    /// Vouches for a digest of something that is no tree. What a note is about stands in its first line, where a checkpoint has the
    /// name of its log, so that one is never taken for the other.
    fn vouch(&self, about: &str, digest: &[u8; 32]) -> Result<String> {
        if about == self.origin || about.contains('\n') {
            return Err(unsigned("a digest is not signed in the name of the record"));
        }
        self.note(vouched(about, digest).as_bytes())
    }

    fn note(&self, text: &[u8]) -> Result<String> {
        let mut note = Note::new(text, &[]).map_err(|error| unsigned(&error.to_string()))?;
        note.add_sigs(&[&self.signer]).map_err(|error| unsigned(&error.to_string()))?;
        String::from_utf8(note.to_bytes()).map_err(|_| unsigned("not text"))
    }
}

fn unsigned(why: &str) -> Error {
    Error::new(Code::Internal, format!("signing failed: {why}"))
}

/// The text of a note that vouches for a digest.
fn vouched(about: &str, digest: &[u8; 32]) -> String {
    format!("{about}\n{}\n", BASE64.encode(digest))
}

fn public_key(origin: &str, seed: &[u8; 32]) -> String {
    signed_note::new_ed25519_verifier_key(origin, &Ed25519::from_bytes(seed).verifying_key())
}

/// The public keys that may have signed a checkpoint, and on a desk the key that signs.
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Vec<String>,
    own: Option<Arc<SigningKey>>,
}

impl Keyring {
    /// Believes these keys, each in its text form.
    pub fn new(keys: Vec<String>) -> Self {
        Self { keys, own: None }
    }

    /// Signs with a key, and believes what it signed.
    pub fn of(own: Arc<SigningKey>) -> Self {
        Self { keys: vec![own.public().to_owned()], own: Some(own) }
    }

    /// The keys' texts.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The tree that a checkpoint vouches for, if a believed key signed it.
    pub fn open(&self, note: &str) -> Result<Checkpoint> {
        let bad = |what: &str| Error::invalid("checkpoint", what);
        let (text, names) = self.believed("checkpoint", note)?;
        let checkpoint = Checkpoint::from_bytes(text.as_bytes()).map_err(|_| bad("is not a checkpoint"))?;
        if names.iter().any(|name| name == checkpoint.origin()) { Ok(checkpoint) } else { Err(bad("is not signed in the name of its origin")) }
    }

    /// Signs a digest of something that is no tree, named by `about`, with the desk's own key.
    pub fn vouch(&self, about: &str, digest: &[u8; 32]) -> Result<String> {
        self.own.as_ref().ok_or_else(|| unsigned("there is no key here to sign with"))?.vouch(about, digest)
    }

    /// Whether a believed key signed this digest of what `about` names.
    pub fn check_vouched(&self, note: &str, about: &str, digest: &[u8; 32]) -> Result<()> {
        let (text, _) = self.believed("signature", note)?;
        if text == vouched(about, digest) { Ok(()) } else { Err(Error::invalid("signature", "is of something else")) }
    }

    /// The text of a note that a believed key signed, and in whose names it did.
    fn believed(&self, field: &'static str, note: &str) -> Result<(String, Vec<String>)> {
        let bad = |what: String| Error::invalid(field, what);
        let mut verifiers: Vec<Box<dyn signed_note::Verifier>> = Vec::new();
        for key in &self.keys {
            verifiers.push(Box::new(StandardVerifier::new(key.trim()).map_err(|_| bad(format!("{key} is not a verifier key")))?));
        }
        let parsed = Note::from_bytes(note.as_bytes()).map_err(|_| bad("is not a signed note".to_owned()))?;
        let (signed, _) = parsed.verify(&VerifierList::new(verifiers)).map_err(|_| bad("carries no valid signature of a known key".to_owned()))?;
        let text = String::from_utf8(parsed.text().to_vec()).map_err(|_| bad("is not text".to_owned()))?;
        Ok((text, signed.iter().map(|signature| signature.name().to_string()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example checkpoint of C2SP tlog-checkpoint.
    const EXAMPLE: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

    /// The example note of C2SP signed-note, and the key that verifies it.
    const NOTE: &str =
        "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
    const NOTE_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";

    #[test]
    fn the_key_id_of_the_specification_comes_out() {
        let key = data_encoding::HEXLOWER.decode(b"e932791ae6e7a840a46164c904786426d5e7821dd8b29a00d61cae72afdd4da4").unwrap();
        let key = ed25519_dalek::VerifyingKey::from_bytes(&key.try_into().unwrap()).unwrap();
        assert_eq!(signed_note::new_ed25519_verifier_key("example.com/foo", &key), NOTE_KEY);
    }

    #[test]
    fn the_note_of_the_specification_is_verified_byte_for_byte() {
        let keys = Keyring::new(vec![NOTE_KEY.to_owned()]);
        let (text, names) = keys.believed("note", NOTE).unwrap();
        assert_eq!((text.as_str(), names), ("This is an example message.\n", vec!["example.com/foo".to_owned()]));
        assert_eq!(Note::from_bytes(NOTE.as_bytes()).unwrap().to_bytes(), NOTE.as_bytes());
        for (from, to) in [("example message", "example massage"), ("— example.com/foo", "— example.com/fop"), ("Uw2QOkn8", "Uw2QOkn9"), ("Uw2Q", "Uw3Q")] {
            assert!(NOTE.contains(from) && keys.believed("note", &NOTE.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn the_signature_of_the_note_formats_own_example_comes_out() {
        let key = SigningKey::parse("PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz").unwrap();
        assert_eq!(key.public(), "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW");
        let text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
        let mut note = Note::new(text.as_bytes(), &[]).unwrap();
        note.add_sigs(&[&key.signer]).unwrap();
        let line = "\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        assert_eq!(String::from_utf8(note.to_bytes()).unwrap(), format!("{text}{line}"));
    }

    #[test]
    fn the_checkpoint_of_the_specification_is_read_and_written_byte_for_byte() {
        let checkpoint = Checkpoint::from_bytes(EXAMPLE.as_bytes()).unwrap();
        assert_eq!((checkpoint.origin(), checkpoint.size()), ("example.com/behind-the-sofa", 20_852_163));
        assert_eq!(checkpoint.to_bytes(), EXAMPLE.as_bytes());
        let key = SigningKey::parse(&SigningKey::generate("example.com/behind-the-sofa", &[9; 32])).unwrap();
        let note = key.checkpoint(checkpoint.size(), *checkpoint.hash()).unwrap();
        assert!(note.starts_with(&format!("{EXAMPLE}\n— example.com/behind-the-sofa ")), "{note}");
        let opened = Keyring::new(vec![key.public().to_owned()]).open(&note).unwrap();
        assert_eq!(opened.hash(), checkpoint.hash());
    }

    #[test]
    fn a_digest_is_vouched_for_and_never_taken_for_a_checkpoint() {
        let key = Arc::new(SigningKey::parse(&SigningKey::generate("desk/one", &[1; 32])).unwrap());
        let keys = Keyring::of(Arc::clone(&key));
        let note = keys.vouch("a-report", &[7; 32]).unwrap();
        let reader = Keyring::new(vec![key.public().to_owned()]);
        assert!(reader.check_vouched(&note, "a-report", &[7; 32]).is_ok());
        assert!(reader.check_vouched(&note, "a-report", &[8; 32]).is_err());
        assert!(reader.check_vouched(&note, "another", &[7; 32]).is_err());
        assert!(Keyring::default().check_vouched(&note, "a-report", &[7; 32]).is_err());
        assert!(reader.open(&note).is_err(), "it is no checkpoint");
        let checkpoint = key.checkpoint(3, Hash([7; 32])).unwrap();
        assert!(reader.check_vouched(&checkpoint, "desk/one", &[7; 32]).is_err());
        assert!(keys.vouch("desk/one", &[7; 32]).is_err() && keys.vouch("a\nb", &[7; 32]).is_err(), "nothing is signed in the name of the record");
        assert!(reader.vouch("a-report", &[7; 32]).is_err(), "whoever only reads signs nothing");
    }

    #[test]
    fn a_changed_note_or_a_foreign_key_is_refused() {
        let key = SigningKey::parse(&SigningKey::generate("desk/one", &[1; 32])).unwrap();
        let other = SigningKey::parse(&SigningKey::generate("desk/two", &[2; 32])).unwrap();
        let note = key.checkpoint(3, Hash([7; 32])).unwrap();
        let keys = Keyring::new(vec![key.public().to_owned()]);
        assert!(keys.open(&note).is_ok());
        assert!(keys.open(&note.replacen("\n3\n", "\n4\n", 1)).is_err());
        assert!(Keyring::new(vec![other.public().to_owned()]).open(&note).is_err());
        assert!(Keyring::default().open(&note).is_err());
        assert!(keys.open("").is_err());
        assert!(keys.open("no note at all").is_err());
    }
}
