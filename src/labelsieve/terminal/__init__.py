"""What people see of a run on a terminal: the console, data as they are read, epochs as they go. Of use to verbs and studies."""
