#if Configuration
public import Connect
internal import Foundation

extension SettingNames {
  /// The keys of a JSON file, as `JSONSnapshot` of swift-configuration has them.
  ///
  /// - Parameter path: The path of the file.
  /// - Throws: `ConnectError` with `failed_precondition` if the file cannot be read, or is no JSON object.
  public static func json(file path: String) throws(ConnectError) -> SettingNames {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw ConnectError(code: .failedPrecondition, message: "the file of settings \(path) cannot be read")
    }
    guard let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
      throw ConnectError(code: .failedPrecondition, message: "the file of settings \(path) is no JSON object")
    }
    return .keys(Self.keys(of: object))
  }

  private static func keys(of object: [String: Any]) -> [String] {
    object.flatMap { name, value in
      (value as? [String: Any]).map { Self.keys(of: $0).map { "\(name).\($0)" } } ?? [name]
    }
  }
}
#endif
