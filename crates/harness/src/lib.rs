//! The workbench: experiment files, sweeps, tables and figures.
