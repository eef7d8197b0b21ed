"""Values, ids, states: what a thing is, without Redis or a clock."""
