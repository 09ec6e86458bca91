/* SPDX-License-Identifier: MIT */
/* What there is to tell, in the order of telling: a section more is a line here. */
#include "info.h"

const struct section info_sections[] = {
    {"build", "Library", 0, tell_build},
    {"host", "Host", NEEDS_HOST, tell_host},
    {"devices", "Devices", NEEDS_HOST | NEEDS_DEVICES, tell_devices},
    {"choice", "Choice of a device", NEEDS_DEVICES, tell_choice},
    {"environment", "Environment", NEEDS_ENVIRONMENT, tell_environment},
    {"launcher", "Launcher", NEEDS_LAUNCH, tell_launcher},
    {"advice", "Advice", NEEDS_ALL, tell_advice},
};
const uint32_t info_section_count = sizeof info_sections / sizeof info_sections[0];
