"""A Switchboard to look at: the real program and its real workers, beside a simulated WhatsApp on this machine."""
