"""What edgesim reads from and finds on disk: content, tables that users bring, the keys of devices."""
