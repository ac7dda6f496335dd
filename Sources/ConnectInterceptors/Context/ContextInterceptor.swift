public import Connect
internal import Synchronization

/// Sends what a call's context says of the request that it belongs to: its id, and its baggage.
///
/// ```swift
/// let config = ProtocolClientConfig(
///   host: "https://api.example.com",
///   interceptors: [{ _ in ContextInterceptor() }]
/// )
/// ```
///
/// A call without a request id gets one, the same for all its attempts, and interceptors inside see it in
/// `context.requestID`. Headers that the caller has set are left alone; an id in them is the call's.
public final class ContextInterceptor: Interceptor, Sendable {
  public struct Options: Sendable {
    /// The header with the request's id; nil for none.
    public var requestIDHeader: String?
    /// Makes the id of a call that has none; nil for leaving it without.
    public var makeRequestID: (@Sendable () -> String)?
    /// Whether the `baggage` header is sent.
    public var sendsBaggage: Bool

    public init(
      requestIDHeader: String? = "x-request-id",
      makeRequestID: (@Sendable () -> String)? = { Options.randomID() },
      sendsBaggage: Bool = true
    ) {
      self.requestIDHeader = requestIDHeader
      self.makeRequestID = makeRequestID
      self.sendsBaggage = sendsBaggage
    }

    /// `x-request-id`, made where there is none, and baggage.
    public static var defaults: Options { Options() }

    /// What the ids of this process begin with: asking the system for each id would cost more than all else.
    private static let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
    private static let count = Atomic<UInt64>(0)

    /// 32 hexadecimal digits that no other call has. Not a secret: who knows some can guess others.
    public static func randomID() -> String {
      let number = self.count.wrappingAdd(1, ordering: .relaxed).oldValue
      let words = (self.mixed(self.seeds.0 &+ number), self.mixed(self.seeds.1 &- number))
      let digits = StaticString("0123456789abcdef")
      return String(unsafeUninitializedCapacity: 32) { buffer in
        var bits = words.0
        for index in 0..<32 {
          if index == 16 { bits = words.1 }
          buffer[index] = digits.utf8Start[Int(bits & 15)]
          bits >>= 4
        }
        return 32
      }
    }

    /// SplitMix64's finalizer: each number has another result.
    private static func mixed(_ number: UInt64) -> UInt64 {
      var bits = number
      bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
      bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
      return bits ^ (bits >> 31)
    }
  }

  private let options: Options

  public init(options: Options = .defaults) {
    self.options = options
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { request in self.complete(&request) })
  }

  private func complete(_ request: inout HTTPRequest<Void>) {
    if self.options.sendsBaggage, let baggage = request.context.baggage.headerValue,
      !request.headers.contains("baggage")
    {
      request.headers.add(name: "baggage", value: baggage)
    }
    guard let header = self.options.requestIDHeader else { return }
    if header != RequestIDHeader.wellKnown { request.context[RequestIDHeader.self] = header.lowercased() }
    if let id = request.headers.first(header) {
      request.context.requestID = id
    } else if let id = request.context.requestID {
      request.headers.add(name: header, value: id)
    } else if let id = self.options.makeRequestID?() {
      request.headers.add(name: header, value: id)
      request.context.requestID = id
    }
  }
}
