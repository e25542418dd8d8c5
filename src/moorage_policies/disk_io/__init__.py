"""DiskIO and QuietDisk: disk bandwidth as an extended resource."""
