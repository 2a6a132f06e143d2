//! Victim heuristics and named policies for the planner, with one registry.
