"""The assignments, one folder each: content only, no machinery."""
