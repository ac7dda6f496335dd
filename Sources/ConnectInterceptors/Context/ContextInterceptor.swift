public import Connect
internal import Synchronization

/// Sends the request id and the baggage of a call's context in the request's headers.
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
  /// What is sent of a call's context, and in which header.
  public struct Options: Sendable {
    /// The header with the request's id; nil for none.
    public var requestIDHeader: String?
    /// Creates the id of a call that has none; nil to send no id then.
    public var makeRequestID: (@Sendable () -> String)?
    /// Whether the `baggage` header is sent.
    public var sendsBaggage: Bool

    /// Options as given; what is left out is as in ``defaults``.
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

    /// Seed the ids of this process: random bytes of the system for each id would cost more than all other work here.
    private static let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
    private static let count = Atomic<UInt64>(0)

    /// 32 hexadecimal digits that no other call has. Not a secret: who knows some can guess others.
    public static func randomID() -> String {
      let number = self.count.wrappingAdd(1, ordering: .relaxed).oldValue
      let words = (self.mixed(self.seeds.0 &+ number), self.mixed(self.seeds.1 &- number))
      return String(unsafeUninitializedCapacity: 32) { buffer in
        let bytes = UnsafeMutableRawBufferPointer(buffer)
        bytes.storeBytes(of: self.digits(of: words.0), toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: self.digits(of: words.0 >> 32), toByteOffset: 8, as: UInt64.self)
        bytes.storeBytes(of: self.digits(of: words.1), toByteOffset: 16, as: UInt64.self)
        bytes.storeBytes(of: self.digits(of: words.1 >> 32), toByteOffset: 24, as: UInt64.self)
        return 32
      }
    }

    /// The lower half of a number as eight hexadecimal digits, a byte each.
    private static func digits(of number: UInt64) -> UInt64 {
      var nibbles = number & 0xffff_ffff
      nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff
      nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff
      nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f
      // Adding six carries the digits that are letters into the next bit.
      let letters = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
      return nibbles + 0x3030_3030_3030_3030 + letters * UInt64(UInt8(ascii: "a") - UInt8(ascii: "9") - 1)
    }

    /// SplitMix64's finalizer: different numbers have different results.
    private static func mixed(_ number: UInt64) -> UInt64 {
      var bits = number
      bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
      bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
      return bits ^ (bits >> 31)
    }
  }

  private let options: Options
  /// The header with the request's id, in lower case.
  private let requestIDHeader: String?
  private let isHeaderWellKnown: Bool

  /// An interceptor without state, which any number of calls may share.
  public init(options: Options = .defaults) {
    self.options = options
    self.requestIDHeader = options.requestIDHeader.map { Headers.Field(name: $0, value: "").name }
    self.isHeaderWellKnown = options.requestIDHeader == RequestIDHeader.wellKnown
  }

  public func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { request in self.complete(&request) })
  }

  private func complete(_ request: inout HTTPRequest<Void>) {
    let context = request.isContextEmpty ? nil : request.context
    if self.options.sendsBaggage, let baggage = context?.baggage.headerValue,
      !request.headers.contains("baggage")
    {
      request.headers.add(name: "baggage", value: baggage)
    }
    guard let header = self.requestIDHeader else { return }
    if !self.isHeaderWellKnown { request.context[RequestIDHeader.self] = header }
    if let id = request.headers.first(header) {
      request.context.requestID = id
    } else if let id = context?.requestID ?? self.options.makeRequestID?() {
      request.headers.append(Headers.Field(lowercasedName: header, value: id))
      request.context.requestID = id
    }
  }
}
