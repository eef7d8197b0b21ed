"""Pure decisions: tables with one row per rule, and properties that search for a case that breaks it."""
