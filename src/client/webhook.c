/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See webhook.h. libcurl is opened when something is to be told: it brings thirty libraries, which
 * take longer to load than most verbs take to run.
 */
#define CURL_DISABLE_TYPECHECK
#include "client/webhook.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* As macros, setopt and getinfo take three words and no more. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

enum {
	LIMIT_MS = 10000,
	MAX_SERVER = 100,
};

/* "https://host:8443" of a URL without what may be secret in it. */
static int server_of(const char *url)
{
	const char *host = strstr(url, "://");
	size_t scheme = host ? (size_t)(host - url) + 3 : 0;
	size_t len = scheme + strcspn(url + scheme, "/?#");
	const char *at = memrchr(url + scheme, '@', len - scheme);

	return at ? (int)scheme : (int)(len < MAX_SERVER ? len : MAX_SERVER);
}

int takt_webhook_check(const char *url, struct takt_err *err)
{
	bool http = strncmp(url, "http://", 7) == 0 && url[7];
	bool https = strncmp(url, "https://", 8) == 0 && url[8];

	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == '\x7f')
			http = https = false;
	return http || https ? 0
			     : takt_err_set(err, -TAKT_E_USAGE,
					    "a webhook must begin with http:// or https:// and "
					    "have no spaces");
}

struct curl {
	__typeof__(curl_easy_init) *init;
	__typeof__(curl_easy_setopt) *setopt;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_getinfo) *getinfo;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_easy_strerror) *strerror;
	__typeof__(curl_slist_append) *append;
	__typeof__(curl_slist_free_all) *free_all;
};

static bool find(void *library, const char *name, void *ret_function)
{
	void *found = dlsym(library, name);

	memcpy(ret_function, &found, sizeof(found));
	return found;
}

/* Stays open to the end of the process. */
static int open_curl(struct curl *ret, struct takt_err *err)
{
	void *library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!library) /* as it is called outside of Debian */
		library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (library && find(library, "curl_easy_init", &ret->init) &&
	    find(library, "curl_easy_setopt", &ret->setopt) &&
	    find(library, "curl_easy_perform", &ret->perform) &&
	    find(library, "curl_easy_getinfo", &ret->getinfo) &&
	    find(library, "curl_easy_cleanup", &ret->cleanup) &&
	    find(library, "curl_easy_strerror", &ret->strerror) &&
	    find(library, "curl_slist_append", &ret->append) &&
	    find(library, "curl_slist_free_all", &ret->free_all))
		return 0;
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "a webhook needs libcurl (Debian: libcurl3-gnutls)");
}

static size_t ignore(char *bytes, size_t size, size_t n, void *ctx)
{
	return size * n;
}

static CURLcode post(const struct curl *curl, CURL *easy, const char *url, const char *json,
		     struct curl_slist *headers, long *ret_status)
{
	CURLcode code;

	curl->setopt(easy, CURLOPT_URL, url);
	curl->setopt(easy, CURLOPT_POSTFIELDS, json);
	curl->setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->setopt(easy, CURLOPT_TIMEOUT_MS, (long)LIMIT_MS);
	curl->setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	code = curl->perform(easy);
	curl->getinfo(easy, CURLINFO_RESPONSE_CODE, ret_status);
	return code;
}

int takt_webhook_post(const char *url, const char *json, struct takt_err *err)
{
	CURLcode code = CURLE_OUT_OF_MEMORY;
	struct curl_slist *headers;
	struct curl curl = {0};
	long status = 0;
	CURL *easy;

	if (open_curl(&curl, err) < 0)
		return -TAKT_E_UNSUPPORTED;
	easy = curl.init();
	headers = curl.append(NULL, "Content-Type: application/json");
	if (easy && headers)
		code = post(&curl, easy, url, json, headers, &status);
	curl.cleanup(easy);
	curl.free_all(headers);
	if (code != CURLE_OK)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "webhook at '%.*s': %s",
				    server_of(url), url, curl.strerror(code));
	if (status < 200 || status > 299)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "webhook at '%.*s' answered %ld",
				    server_of(url), url, status);
	return 0;
}
