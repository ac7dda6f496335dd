public import Connect

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ConnectError {
  /// `canceled`, as a call that its caller has cancelled fails with.
  public static func canceled() -> ConnectError {
    ConnectError(
      code: .canceled,
      message: "the call was cancelled",
      exception: nil,
      details: [],
      metadata: [:]
    )
  }

  /// The error in a response of the Connect protocol, <https://connectrpc.com/docs/protocol#error-end-stream>.
  ///
  /// - Parameters:
  ///   - code: Of an error that says none itself.
  ///   - headers: Of the response. They are the metadata, with the trailers.
  ///   - trailers: Of the response. One with the name of a header replaces it.
  ///   - source: The JSON. What is no JSON becomes the message.
  public static func from(code: Code, headers: Headers?, trailers: Trailers?, source: Data?) -> ConnectError {
    var metadata: Headers = [:]
    for (name, values) in headers ?? [:] { metadata[name.lowercased()] = values }
    for (name, values) in trailers ?? [:] { metadata[name.lowercased()] = values }
    guard let source else {
      return ConnectError(
        code: code,
        message: "the response has no error message",
        exception: nil,
        details: [],
        metadata: metadata
      )
    }
    do {
      let fields = try JSONDecoder().decode(ErrorFields.self, from: source)
      return ConnectError(fields, code: code, metadata: metadata)
    } catch {
      return ConnectError(
        code: code,
        message: String(bytes: source, encoding: .utf8).map(PeerText.message),
        exception: error,
        details: [],
        metadata: metadata
      )
    }
  }

  private init(_ fields: ErrorFields, code: Code, metadata: Headers) {
    self.init(
      code: fields.code.flatMap { Code(name: $0) } ?? code,
      message: fields.message.map(PeerText.message),
      exception: nil,
      details: fields.details ?? [],
      metadata: metadata
    )
  }
}

extension ConnectError: Decodable {
  /// Reads the error of the Connect protocol, <https://connectrpc.com/docs/protocol#error-end-stream>. One without a known code
  /// is `unknown`.
  public init(from decoder: any Decoder) throws {
    self.init(try ErrorFields(from: decoder), code: .unknown, metadata: [:])
  }
}

extension ConnectError.Detail: Decodable {
  private enum CodingKeys: String, CodingKey {
    case type
    case value
  }

  /// Reads a detail of an error of the Connect protocol.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let value = try container.decodeIfPresent(String.self, forKey: .value) ?? ""
    let padding = String(repeating: "=", count: (4 - value.utf8.count % 4) % 4)
    self.init(
      type: try container.decodeIfPresent(String.self, forKey: .type) ?? "",
      payload: Data(base64Encoded: value + padding)
    )
  }
}

/// An error in the Connect protocol's JSON.
private struct ErrorFields: Decodable {
  let code: String?
  let message: String?
  let details: [ConnectError.Detail]?
}
