"""The spine: one turn after another, from assembled prompt to appended result."""
