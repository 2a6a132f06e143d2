//! Facts about graphs and plans that the commands show: counted here, worded in `commands`.

pub mod explain;
pub mod floor;
pub mod gap;
pub mod least;
pub mod profile;
pub mod run;
