/* SPDX-License-Identifier: MIT */
/* All sections, in the order of the output. A new section needs a line here. */
#include "info.h"

const struct section info_sections[] = {
    {"build", "Library", 0, print_build},
    {"host", "Host", NEEDS_HOST, print_host},
    {"devices", "Devices", NEEDS_HOST | NEEDS_DEVICES, print_devices},
    {"choice", "Choice of a device", NEEDS_DEVICES, print_choice},
    {"environment", "Environment", NEEDS_ENVIRONMENT, print_environment},
    {"launcher", "Launcher", NEEDS_LAUNCH, print_launcher},
    {"advice", "Advice", NEEDS_ALL, print_advice},
};
const uint32_t info_section_count = sizeof info_sections / sizeof info_sections[0];
