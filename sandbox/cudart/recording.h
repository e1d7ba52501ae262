// The backend that does nothing and writes everything down.
#pragma once

#include "runtime.h"

Backend *recording();
