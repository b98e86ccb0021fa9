//! What the redactor tells apart.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::MARK;
use crate::{Error, Result};

/// A kind of finding. Where two overlap, the one that stands first here names what is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A value of the secret store.
    Known,
    /// A token, session, link or key of a desk.
    DeskmateToken,
    /// A key of Anthropic.
    AnthropicKey,
    /// An access key of AWS.
    AwsKey,
    /// A token of GitHub.
    GithubToken,
    /// A token of GitLab.
    GitlabToken,
    /// A token or webhook of Slack.
    SlackToken,
    /// A key or token of Google.
    GoogleKey,
    /// A secret key of Stripe, or a webhook's secret.
    StripeKey,
    /// A token of npm.
    NpmToken,
    /// A token of PyPI.
    PypiToken,
    /// A key of OpenAI, or of somebody who writes them alike.
    OpenaiKey,
    /// A private key.
    PrivateKey,
    /// A JSON Web Token.
    Jwt,
    /// A name and password as HTTP sends them.
    BasicAuth,
    /// A bearer token as HTTP sends it.
    Bearer,
    /// The password in a URL.
    ConnectionPassword,
    /// A value that is given to something called a password, a token or a key.
    SecretAssignment,
    /// The same in JSON.
    SecretField,
    /// A bank account.
    Iban,
    /// A payment card.
    Card,
    /// A social security number of the United States.
    Ssn,
    /// A national insurance number of the United Kingdom.
    UkNino,
    /// A tax number that a person has in Germany.
    DeTaxId,
    /// A social security number of France.
    FrNir,
    /// An identity number of Spain, of citizens and of foreigners.
    EsDni,
    /// A tax code of Italy.
    ItCodiceFiscale,
    /// A citizen service number of the Netherlands.
    NlBsn,
    /// An identity number of India.
    InAadhaar,
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// The name of a person, told by what stands before it.
    Name,
    /// What is nested too deep to be looked into.
    TooDeep,
    /// What could not be made clean piece by piece.
    Unclear,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::Known,
        Self::DeskmateToken,
        Self::AnthropicKey,
        Self::AwsKey,
        Self::GithubToken,
        Self::GitlabToken,
        Self::SlackToken,
        Self::GoogleKey,
        Self::StripeKey,
        Self::NpmToken,
        Self::PypiToken,
        Self::OpenaiKey,
        Self::PrivateKey,
        Self::Jwt,
        Self::BasicAuth,
        Self::Bearer,
        Self::ConnectionPassword,
        Self::SecretAssignment,
        Self::SecretField,
        Self::Iban,
        Self::Card,
        Self::Ssn,
        Self::UkNino,
        Self::DeTaxId,
        Self::FrNir,
        Self::EsDni,
        Self::ItCodiceFiscale,
        Self::NlBsn,
        Self::InAadhaar,
        Self::Email,
        Self::Phone,
        Self::Name,
        Self::TooDeep,
        Self::Unclear,
    ];
    /// Those that can be switched off.
    pub const PERSONAL: [Self; 13] = [
        Self::Iban,
        Self::Card,
        Self::Ssn,
        Self::UkNino,
        Self::DeTaxId,
        Self::FrNir,
        Self::EsDni,
        Self::ItCodiceFiscale,
        Self::NlBsn,
        Self::InAadhaar,
        Self::Email,
        Self::Phone,
        Self::Name,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::DeskmateToken => "deskmate_token",
            Self::AnthropicKey => "anthropic_key",
            Self::AwsKey => "aws_key",
            Self::GithubToken => "github_token",
            Self::GitlabToken => "gitlab_token",
            Self::SlackToken => "slack_token",
            Self::GoogleKey => "google_key",
            Self::StripeKey => "stripe_key",
            Self::NpmToken => "npm_token",
            Self::PypiToken => "pypi_token",
            Self::OpenaiKey => "openai_key",
            Self::PrivateKey => "private_key",
            Self::Jwt => "jwt",
            Self::BasicAuth => "basic_auth",
            Self::Bearer => "bearer",
            Self::ConnectionPassword => "connection_password",
            Self::SecretAssignment => "secret_assignment",
            Self::SecretField => "secret_field",
            Self::Iban => "iban",
            Self::Card => "card",
            Self::Ssn => "ssn",
            Self::UkNino => "uk_nino",
            Self::DeTaxId => "de_tax_id",
            Self::FrNir => "fr_nir",
            Self::EsDni => "es_dni",
            Self::ItCodiceFiscale => "it_codice_fiscale",
            Self::NlBsn => "nl_bsn",
            Self::InAadhaar => "in_aadhaar",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Name => "name",
            Self::TooDeep => "too_deep",
            Self::Unclear => "unclear",
        }
    }

    /// The kind of personal data with a name.
    pub fn personal(name: &str) -> Result<Self> {
        Self::PERSONAL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::PERSONAL.map(Self::name).join(", ");
            Error::invalid("redact", format!("knows these kinds of personal data: {names}; secrets are always taken out"))
        })
    }

    /// What stands in its place.
    pub(super) fn mark(self) -> String {
        format!("{MARK}{}]", self.name())
    }
}

/// How often each kind was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    counts: BTreeMap<Kind, u64>,
}

impl Found {
    pub(super) fn add(&mut self, kind: Kind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    pub(crate) fn extend(&mut self, more: &Self) {
        for (kind, count) in &more.counts {
            *self.counts.entry(*kind).or_default() += count;
        }
    }

    /// The counts that an event tells.
    pub(crate) fn of_fact(fact: Option<&Value>) -> Self {
        let counts = fact.and_then(Value::as_object).into_iter().flatten();
        let known = |name: &str| Kind::ALL.into_iter().find(|kind| kind.name() == name);
        Self { counts: counts.filter_map(|(name, count)| Some((known(name)?, count.as_u64()?))).collect() }
    }

    /// One of a kind was none.
    pub(crate) fn take(&mut self, kind: Kind) {
        if let Some(count) = self.counts.get_mut(&kind) {
            *count -= 1;
        }
        self.counts.retain(|_, count| *count > 0);
    }

    /// How often a kind was found.
    pub fn of(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// How much was found.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The kinds that were found, with how often.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }
}

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.counts.iter().map(|(kind, count)| (kind.name(), count)))
    }
}
