//! Graphs to plan: lowered operators, synthetic families, and importers for graphs people have.
