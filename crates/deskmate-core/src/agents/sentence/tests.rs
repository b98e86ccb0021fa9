//! Sentences against what people read out of them: accuracy for each field, on the set with which the rules were made and on one
//! that was written afterwards.

mod accuracy;
mod reading;
