//! Makes documents and reads them back with other programs' eyes.

mod excel;
mod hostile;
mod pdf;
mod word;
