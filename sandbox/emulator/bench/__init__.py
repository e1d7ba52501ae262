"""The emulator's benchmark."""
