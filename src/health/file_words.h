/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor looks for in other programs' files: text or bytes in, the word that was looked
 * for out. No file is opened here. Whatever the text is, what is returned has an end; false = it is
 * not there, or does not fit into `size` bytes, and ret is as it was.
 */
#ifndef TAKT_HEALTH_FILE_WORDS_H
#define TAKT_HEALTH_FILE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first version in the line that the driver's kernel module says of itself: "550.90.07". */
bool takt_find_module_version(const char *line, char *ret, size_t size);

/* Of the first package in dpkg's status whose name begins so, if it is installed, the version that
 * its maker gave it: "550.90.07-0ubuntu1" is 550.90.07. */
bool takt_find_package_version(const char *status, const char *prefix, char *ret, size_t size);

/* The version that the fabric manager last said in its log that it is. */
bool takt_find_manager_version(const char *log, char *ret, size_t size);

/* The program of the runtime "nvidia" in docker's daemon.json. */
bool takt_find_runtime(const char *text, char *ret, size_t size);

/* Whether NVIDIA's container runtime is told to leave cgroups alone. */
bool takt_says_no_cgroups(const char *text);

/* The driver that a CDI file was written for. */
bool takt_find_cdi_version(const char *text, char *ret, size_t size);

/* The CUDA of a PyTorch, from its version.py: "12.4"; "" = built without. */
bool takt_find_torch_cuda(const char *text, char *ret, size_t size);

/* The version of a CUDA toolkit, from its version.json. */
bool takt_find_toolkit_version(const char *text, char *ret, size_t size);

/* Whether a PCI bridge with this configuration space sends peers' traffic upwards (Access Control
 * Services); false also when it has none, or its end is missing. */
bool takt_bridge_redirects(const uint8_t *config, size_t len);

#endif
