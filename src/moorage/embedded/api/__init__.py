"""What the API does with objects of any kind: reading, checking, writing, patching, deleting."""
