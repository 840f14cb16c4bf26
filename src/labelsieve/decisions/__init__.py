"""What people decided about labels: the entry, the log it is kept in, and what holds now. Needs neither torch nor numpy."""
