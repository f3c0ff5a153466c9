"""Files on disk: where content is found, tables that users bring, the keys of devices."""
