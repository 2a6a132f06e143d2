//! The checker, tested by plans made by hand, by breaking valid plans one rule at a time, by a
//! second reading of the rules, and by hostile plans.

mod examples;
mod generate;
mod hostile;
mod independence;
mod mutation;
mod reference;
