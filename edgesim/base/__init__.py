"""The ground floor: validation, registries, files on disk, saved records, leases; it knows nothing of edgesim."""
