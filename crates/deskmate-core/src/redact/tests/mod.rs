//! What the redactor finds and leaves: a labelled set with its precision and recall, properties, and hostile texts.

mod hostile;
mod labelled;
mod left;
mod negatives;
mod positives;
mod properties;
