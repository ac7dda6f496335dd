/// An interceptor of a call, with its call hooks once it was asked for them.
struct ResolvedInterceptor {
  let interceptor: any Interceptor
  var function = CallFunction()
}
