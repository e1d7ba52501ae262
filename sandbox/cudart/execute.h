// The backend that does everything at once, in the program's own process, on the emulator.
#pragma once

#include "runtime.h"
#include "texture.h"

// Starts executing: asks the service behind `socket` how. Ends the process when there is no service.
Backend *executing(int socket);

// Of the emulated device; only where a program executes.
kw::ImageTable &images();
