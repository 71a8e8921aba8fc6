"""The public send API: authenticates, validates, checks limits, dedupes, enqueues."""
