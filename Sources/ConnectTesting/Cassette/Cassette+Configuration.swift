public import Connect

extension Cassette {
  /// How calls are written down, and found again.
  public struct Configuration: Sendable {
    /// The methods whose messages are written as JSON. Messages of other methods are base64, unless they are JSON already.
    public var messages: Messages
    /// What does not get into the file.
    public var redaction: Redaction
    /// The headers and trailers that are left out, since they change from run to run; in lower case. See
    /// ``defaultOmittedHeaders``.
    public var omittedHeaders: Set<String>
    /// Whether the file has the times of what happens, in milliseconds since the call's start. A file without them changes
    /// less when it is recorded again, and is always served at once.
    public var recordsTiming: Bool
    /// Decides whether a recorded request answers an asked request; nil for equal messages. Both are redacted, and have the
    /// same method, protocol and `host`. For a stream, `recorded` has as many messages as were asked so far.
    public var matching: (@Sendable (_ asked: Request, _ recorded: Request) -> Bool)?
    /// The compressions that are undone in the file. Messages in other compressions are base64.
    public var compressions: [any CompressionPool]
    /// The largest body of a call, in bytes, in either direction. A call with a larger one is not recorded, which is an error.
    public var maximumBodySize: Int
    /// The largest cassette, in bytes. Calls beyond it are not recorded, which is an error. Reading a larger file fails.
    public var maximumSize: Int
    /// Advice on how to record a missing call, for its error.
    package var advice = CassetteTransport.Mode.recordMissing.advice

    /// Time limits (`connect-timeout-ms`, `grpc-timeout`), `user-agent` and `x-user-agent`, `x-request-id`, the context of
    /// traces (`traceparent`, `tracestate`, `baggage`), and the response's `date`.
    public static let defaultOmittedHeaders: Set<String> = [
      "baggage", "connect-timeout-ms", "date", "grpc-timeout", "traceparent", "tracestate", "user-agent",
      "x-request-id", "x-user-agent",
    ]

    /// A configuration as given: by default gRPC's and Connect's headers of time limits and traces are omitted, times
    /// are recorded, and calls match by their method, protocol and messages.
    public init(
      messages: Messages = Messages(),
      redaction: Redaction = Redaction(),
      omittedHeaders: Set<String> = Configuration.defaultOmittedHeaders,
      recordsTiming: Bool = true,
      matching: (@Sendable (_ asked: Request, _ recorded: Request) -> Bool)? = nil,
      compressions: [any CompressionPool] = [GzipCompressionPool(), DeflateCompressionPool()],
      maximumBodySize: Int = 64 << 20,
      maximumSize: Int = 256 << 20
    ) {
      self.messages = messages
      self.redaction = redaction
      self.omittedHeaders = omittedHeaders
      self.recordsTiming = recordsTiming
      self.matching = matching
      self.compressions = compressions
      self.maximumBodySize = maximumBodySize
      self.maximumSize = maximumSize
    }
  }

  /// A call's request as the file has it.
  public struct Request: Sendable, Hashable {
    /// `/package.Service/Method`.
    public var path: String
    /// The headers, redacted, without the omitted ones. Among them is `host` if the call has an authority of its own
    /// (`CallOptions.authority`).
    public var headers: Headers
    /// Each message as JSON in one line with sorted keys, where its type is known, else as base64.
    public var messages: [String]
  }

  /// What is kept out of the file. A redacted text becomes `REDACTED`, a number zero, a boolean false, a list empty. If the
  /// message's type does not accept the replacement, the field is absent.
  ///
  /// Redacted values of at least 6 bytes are also replaced in the rest of the call: in other headers, texts, errors and base64.
  /// So the echo of a token is redacted, too. This holds for the first 256 values of a call, and not for the keys of maps. A
  /// response whose body was changed loses its `content-length`.
  ///
  /// The queries of URLs are not kept, but for the message of a GET, which is redacted like others.
  public struct Redaction: Sendable {
    /// Headers and trailers, in lower case. See ``defaultHeaders``.
    public var headers: Set<String>
    /// The headers and trailers in base64 (`-bin`) that are kept, in lower case. All others are redacted. By default
    /// `grpc-status-details-bin`, gRPC's form of an error's details.
    public var keptBinaryHeaders: Set<String>
    /// Paths of message fields, for example `user.password`. Names are those of the proto file, or of JSON. A path goes
    /// through lists by itself; `[]` also stands for the values of a map: `accounts[].token`.
    ///
    /// The paths hold for requests and responses of all methods. A message whose fields are not known cannot be redacted: its
    /// call is not recorded, which is an error that names the method. A path that no known message has is an error, too.
    public var fields: [String]
    /// Further paths for single methods, by the method's path.
    public var methodFields: [String: [String]]
    /// Whether errors have messages.
    public var keepsErrorMessages: Bool
    /// Whether errors have details. gRPC has both in one field, which is left out if either is not kept.
    public var keepsErrorDetails: Bool

    /// `authorization`, `proxy-authorization`, `cookie`, `set-cookie`, `x-api-key`.
    public static let defaultHeaders: Set<String> = [
      "authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key",
    ]

    /// A redaction of the ``defaultHeaders`` and of all binary headers but gRPC's error details, unless told
    /// otherwise.
    public init(
      headers: Set<String> = Redaction.defaultHeaders,
      keptBinaryHeaders: Set<String> = ["grpc-status-details-bin"],
      fields: [String] = [],
      methodFields: [String: [String]] = [:],
      keepsErrorMessages: Bool = true,
      keepsErrorDetails: Bool = true
    ) {
      self.headers = headers
      self.keptBinaryHeaders = keptBinaryHeaders
      self.fields = fields
      self.methodFields = methodFields
      self.keepsErrorMessages = keepsErrorMessages
      self.keepsErrorDetails = keepsErrorDetails
    }
  }
}
