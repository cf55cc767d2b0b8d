"""Which piece talks to which, and the layouts that message passing takes."""
