/* Every way to open and close a range that NVTX has, with the levels that it should return where a
 * tool is there that knows the name `step` (`swapped-in`) or another one (`other`), and where none is
 * (`alone`). */

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(long long found, long long expected, const char* what) {
  if (found == expected) return;
  fprintf(stderr, "%s: %lld, not %lld\n", what, found, expected);
  ++failures;
}
#define EXPECT(call, expected) expect((long long)(call), expected, #call)

static nvtxEventAttributes_t event(int32_t type) {
  nvtxEventAttributes_t attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = type;
  return attributes;
}

int main(int count, char** arguments) {
  const int none = NVTX_NO_PUSH_POP_TRACKING;
  int tool, batch, level0, level1;
  nvtxDomainHandle_t domain;
  nvtxEventAttributes_t plain = event(NVTX_MESSAGE_TYPE_ASCII);
  nvtxEventAttributes_t wide = event(NVTX_MESSAGE_TYPE_UNICODE);
  nvtxEventAttributes_t registered = event(NVTX_MESSAGE_TYPE_REGISTERED);
  nvtxEventAttributes_t registered_wide = event(NVTX_MESSAGE_TYPE_REGISTERED);
  nvtxEventAttributes_t registered_other = event(NVTX_MESSAGE_TYPE_REGISTERED);
  nvtxEventAttributes_t nameless = event(NVTX_MESSAGE_UNKNOWN);
  nvtxEventAttributes_t small = event(NVTX_MESSAGE_TYPE_ASCII);
  nvtxRangeId_t first, second;
  if (count != 2) return 2;
  batch = strcmp(arguments[1], "swapped-in") == 0;
  tool = batch || strcmp(arguments[1], "other") == 0;
  level0 = tool ? 0 : none;
  level1 = tool ? 1 : none;

  domain = nvtxDomainCreateA("library");
  EXPECT(domain != NULL, tool);
  EXPECT(nvtxDomainCreateW(L"other library") == domain, !tool);
  plain.message.ascii = "step";
  wide.message.unicode = L"step";
  registered.message.registered = nvtxDomainRegisterStringA(domain, "step");
  registered_wide.message.registered = nvtxDomainRegisterStringW(domain, L"step");
  registered_other.message.registered = nvtxDomainRegisterStringA(domain, "steps");
  small.message.ascii = "step";
  small.size = 8;

  EXPECT(nvtxRangePushA("epoch"), level0);
  EXPECT(nvtxRangePushA("step"), level1);
  EXPECT(nvtxRangePop(), level1);
  EXPECT(nvtxRangePushW(L"step"), level1);
  EXPECT(nvtxRangePop(), level1);
  EXPECT(nvtxRangePop(), level0);
  EXPECT(nvtxRangePop(), tool ? -1 : none);

  EXPECT(nvtxRangePushEx(&plain), level0);
  EXPECT(nvtxRangePop(), level0);
  EXPECT(nvtxRangePushEx(&wide), level0);
  EXPECT(nvtxRangePop(), level0);
  EXPECT(nvtxRangePushEx(&registered), level0);
  EXPECT(nvtxRangePop(), level0);

  /* None of these is a batch. */
  EXPECT(nvtxRangePushEx(&registered_other), level0);
  EXPECT(nvtxRangePushEx(&nameless), level1);
  EXPECT(nvtxRangePushEx(&small), tool ? 2 : none);
  EXPECT(nvtxRangePushEx(NULL), tool ? 3 : none);
  EXPECT(nvtxRangePushA(NULL), tool ? 4 : none);
  EXPECT(nvtxRangePop(), tool ? 4 : none);
  EXPECT(nvtxRangePop(), tool ? 3 : none);
  EXPECT(nvtxRangePop(), tool ? 2 : none);
  EXPECT(nvtxRangePop(), level1);
  EXPECT(nvtxRangePop(), level0);

  EXPECT(nvtxDomainRangePushEx(domain, &registered_wide), level0);
  EXPECT(nvtxRangePushA("outside of the domain"), level0);
  EXPECT(nvtxDomainRangePop(domain), level0);
  EXPECT(nvtxRangePop(), level0);

  first = nvtxRangeStartA("step");
  EXPECT(first != 0, batch);
  second = nvtxDomainRangeStartEx(domain, &registered);
  EXPECT(second != first, batch);
  nvtxRangeEnd(first);
  nvtxDomainRangeEnd(domain, second);
  first = nvtxRangeStartW(L"step");
  nvtxRangeEnd(first);
  first = nvtxRangeStartEx(&plain);
  nvtxRangeEnd(first);
  EXPECT(nvtxRangeStartA("another"), 0);
  nvtxRangeEnd(0);
  nvtxMarkA("step");
  nvtxDomainDestroy(domain);
  return failures == 0 ? 0 : 1;
}
