/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon makes of an actuator that says anything: whole replies whose texts end, or the
 * word that it is none of this build. */
#include "fuzz_hostile_server.h"

#include <errno.h>

#include "actuate/actuate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_actuate_reply reply;
	struct takt_actuate_client *client;
	struct fuzz_bytes in = {data, size};
	struct takt_err err = {0};
	int rc;

	fuzz_expect(takt_actuate_connect(hostile_path(), &client, NULL) == 0);
	hostile_send(&in, sizeof(reply), TAKT_ACTUATE_VERSION);
	while ((rc = takt_actuate_recv(client, &reply, &err)) > 0) {
		fuzz_expect(reply.version == TAKT_ACTUATE_VERSION);
		fuzz_expect(memchr(reply.uuid, '\0', sizeof(reply.uuid)) != NULL);
		fuzz_expect(memchr(reply.message, '\0', sizeof(reply.message)) != NULL);
		fuzz_expect(takt_actuate_gpu_state_name(reply.gpu_state)[0]);
	}
	fuzz_expect((rc == -EPIPE || rc == -TAKT_E_VERSION) && err.msg[0]);
	takt_actuate_client_free(client);
	return 0;
}
