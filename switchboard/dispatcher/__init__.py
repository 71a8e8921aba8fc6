"""The pacing engine: decides when each account may send next, and hands that one message over."""
