"""The small HTTP layer that every part with routes shares: error table, app, signatures."""
