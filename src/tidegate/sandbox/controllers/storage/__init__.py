"""Controllers of PersistentVolumeClaims and PersistentVolumes."""
