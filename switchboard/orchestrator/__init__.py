"""Sessions and their workers. For now: the workers' outbox and what they report about messages."""
