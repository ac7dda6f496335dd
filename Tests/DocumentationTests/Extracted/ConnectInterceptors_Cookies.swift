// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/Cookies.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_Cookies_1() async throws {
  let jar = CookieJar()  // one for each user
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    interceptors: [{ _ in CookieInterceptor(jar) }]
  )
  _ = jar
  _ = config
}

private func ConnectInterceptors_Cookies_2() async throws {
  let jar: CookieJar = given()
  let cache: ResponseCache = given()
  let budget: RetryBudget = given()
  let interceptors: [InterceptorFactory] = [
    { _ in CookieInterceptor(jar, .requests) },
    { _ in CacheReadInterceptor(cache) },
    { _ in CacheWriteInterceptor(cache) },
    { _ in RetryInterceptor(budget: budget) },
    { _ in CookieInterceptor(jar, .responses) },
  ]
  _ = jar
  _ = cache
  _ = budget
  _ = interceptors
}
