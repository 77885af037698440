"""Pure judgement: policy files as compiled tables, and verdicts with reasons."""
